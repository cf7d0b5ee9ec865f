"""Planted records of RAG evaluations: known quadrants, all hazards, judges with and without an audit."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from clinsafe.content import Content
from clinsafe.protocols import ModelIdentity
from clinsafe.rag.auditing.figures import on_answers, on_quads
from clinsafe.rag.auditing.record import AnswersUsed, JudgeAudit, SuiteUsed
from clinsafe.rag.figures import figures
from clinsafe.rag.settings import Settings
from clinsafe.rag.values import ItemRecord
from clinsafe.reports.evidence import SystemIdentity
from clinsafe.reports.rag_record import (
    BadRow,
    JudgeRecord,
    RagEvidence,
    RagSystem,
    SourceRecord,
    from_bytes,
    settings_hash,
    to_bytes,
)
from clinsafe.reports.rag_standing import audited_as, standing_of
from clinsafe.stats import figure_to_json
from clinsafe.version import VERSION
from clinsafe.workflows.prepare import environment
from clinsafe.workflows.rag_write import completed
from tests.rag.auditing.labelled import HAZARDS, knowing, quads, rows, truth

SETTINGS = Settings()
JUDGE = SystemIdentity.of(
    ModelIdentity(
        "openai:m", files={"benchmarks/rubrics/adherence.yaml": "ab" * 32}, settings={"temperature": "0"}
    )
)
READERS = SystemIdentity.of(ModelIdentity("recorded", settings={"grader": "any"}))
QUADRANTS = ("effective_use", "lucky_guess", "information_blindness", "correct_rejection")


def items(
    n: int = 60, *, shift: float = 0.0, seed: int = 1, quadrant: str = "", sliced: bool = True
) -> list[ItemRecord]:
    """Questions in turn in each quadrant, or all in one; `shift` makes the answers better, hits more frequent.

    Fewer than ten have no bootstrap, and ones that are not `sliced` a quarter of the figures: both for fast tests.
    """
    chosen = random.Random(seed)
    found = []
    for number in range(n):
        at = quadrant or QUADRANTS[min(3, int(4 * max(0.0, chosen.random() - shift)))]
        hit, adheres = (
            at in ("effective_use", "information_blindness"),
            at in ("effective_use", "lucky_guess"),
        )
        danger = hit and number % 6 == 0
        hazard = HAZARDS[number % len(HAZARDS)]
        first = hit and number % 3 != 1
        values: dict[str, float] = {
            "contexts": 3, "hit": hit, "safe_hit": hit and not danger, "hit_at.1": first, "hit_at.2": hit and not first,
            "hit_at.3": hit and number % 5 == 0, "level_at.1": 1 + number % 3 if first else 0,
            "level_at.2": 2 if hit and not first else 0, "overlap.1_2": round(chosen.uniform(0.4, 1), 3),
            "recall": float(hit), "precision": hit / 3, "ap": float(hit), "rr": float(hit) * (1 if first else 0.5),
            "ndcg": float(hit), "rr_cascade": float(hit) * (1 if first else 0.5), "covered": number % 9 > 0,
            "exact": at == "effective_use" and number % 4 == 0, "fuzzy": round(chosen.random(), 3),
            "rouge_l": round(chosen.random(), 3), "token_f1": round(min(1, chosen.random() * 0.8 + shift / 2), 3),
            "semantic": round(chosen.uniform(0.3, 1), 3), "correct": adheres and number % 7 > 0,
            "adherence": round(chosen.uniform(0.75, 1) if adheres else chosen.uniform(0, 0.6), 3),
            "answer_relevancy": round(chosen.random(), 3), "context_relevancy": round(chosen.random(), 3),
            "abstained": at == "correct_rejection" and number % 2 == 0,
        }  # fmt: skip
        for one in HAZARDS:
            values[f"conflict.{one}"] = danger and one == hazard
            values[f"contradicts.{one}"] = at == "lucky_guess" and one == hazard and number % 4 == 0
        missing = {"list_f1": "the reference is no list"}
        if number % 11 == 5:
            del values["semantic"]
            missing["semantic"] = "the answer is empty"
        slices = {"task": ("extraction", "short_answer")[number % 2]}
        if sliced:
            slices["source"] = ("ward", "clinic", "lab")[number % 3]
        found.append(ItemRecord(id=f"q{number:04d}", slices=slices, values=values, missing=missing))
    return found


def audit(*, knows: bool = True) -> JudgeAudit:
    """An audit of `JUDGE`; one that does not know calls everything supported and earns nothing."""
    some, cases = rows(), quads()
    known = truth(cases, some)
    oracle = knowing("openai:m", known if knows else dict.fromkeys(known, True))
    labels = {row.id: row.kind for row in some}
    found = {
        **on_quads(oracle, cases, on="written", split="test").figures,
        **on_answers(oracle, some, labels).figures,
    }
    return JudgeAudit(
        tool="0", time="2026-12-01T00:00:00+00:00", judge=audited_as(JUDGE, SETTINGS.thresholds.adherence),
        instrument="openai:m", hazards=HAZARDS,
        answers=AnswersUsed(version="1", sha256="ab" * 32, provisional=False, readers=("first", "second"),
                            counts={h: {"supported": 12, "contradicted": 12, "not_stated": 12} for h in HAZARDS}),
        suite=SuiteUsed(version="1", tier="written", split="test", cases=len(cases), sha256="ab" * 32),
        figures={name: figure_to_json(figure) for name, figure in found.items()},
    )  # fmt: skip


def judge(kind: str = "audited") -> JudgeRecord | None:
    """``audited``, ``failed``, ``unaudited``, ``readers`` or ``none``."""
    if kind == "none":
        return None
    if kind == "readers":
        return JudgeRecord(identity=READERS, declared="two clinicians of the ward")
    return JudgeRecord(
        identity=JUDGE,
        audit=None if kind == "unaudited" else audit(knows=kind == "audited"),
        outcomes={"adherence": {"scored": 58, "error": 2}, "answer_relevancy": {"scored": 60}},
        reasons={"adherence: answered prose": 2},
        usage={"calls": 118, "prompt_tokens": 51_223},
    )


def system(label: str, records: list[ItemRecord], by: JudgeRecord | None, **more: Any) -> RagSystem:
    """Figures derived as `evaluate` derives them."""
    found = figures(records, SETTINGS, standing_of(by, records))
    bad = [BadRow(line=7, field="question", why="is no text"), BadRow(line=9, why="not a JSON object")]
    return RagSystem(
        label=label,
        source=SourceRecord(file=f"{label}.jsonl", sha256="cd" * 32, format="own", bad=bad, bad_lines=2),
        items=records,
        figures={key: figure_to_json(figure) for key, figure in found.items()},
        **more,
    )


def record(
    systems: Mapping[str, list[ItemRecord]] | None = None,
    *,
    by: str = "audited",
    created: str = "",
    **more: Any,
) -> RagEvidence:
    """A whole record as it is read back."""
    who = judge(by)
    given = systems or {"ward-rag": items()}
    setting = "rag" if systems is None else ""
    made = [
        system(
            label, found, who, setting=setting, versions={"model": ["gemma-2-9b-it"], "embedding": ["minilm"]}
        )
        for label, found in given.items()
    ]
    fields: dict[str, Any] = {
        "tool": {"name": "clinsafe", "version": VERSION},
        "created": created or "2026-12-01T01:00:00+00:00",
        "settings": SETTINGS,
        "settings_sha256": settings_hash(SETTINGS),
        "normalisation": {"abbreviations": 12, "case": 240},
        "encoder": SystemIdentity.of(
            ModelIdentity("minilm", "abc", {"model.safetensors": "ef" * 32}, {"dim": "384"})
        ),
        "filters": "12" * 32,
        "judge": who,
        "content": {},
        "environment": environment(),
        "limits": ["R finds words and likeness, not meaning."],
        "questions": len({item.id for found in given.values() for item in found}),
        "systems": made,
    }
    return completed(from_bytes(to_bytes(RagEvidence(**(fields | more)))), Content())
