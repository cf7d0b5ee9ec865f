"""Traces in, record out: planted traces of known quadrants, a stopped run that goes on, bad lines, no text kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clinsafe.content import Content, sha256_file
from clinsafe.errors import UsageError
from clinsafe.rag.auditing.record import read_judge_audit
from clinsafe.rag.normalise import normaliser
from clinsafe.rag.settings import Settings
from clinsafe.reports.rag_record import from_bytes, to_bytes
from clinsafe.reports.rag_standing import standing_of
from clinsafe.workflows.rag_audit import load_kit
from clinsafe.workflows.rag_command import SHIPPED
from clinsafe.workflows.rag_evaluate import BATCH, Plan, Source, evaluate
from clinsafe.workflows.rag_judges import JudgeOptions, build_judge
from clinsafe.workflows.rag_measure import Instruments, told

WORDS = Settings(levels=("substring", "tokens"))
FOUND, OTHER = "The usual starting dose is 5 mg once daily.", "Store the tablets in a dry place."
READERS = "two ward pharmacists"


def trace(number, *, hit=True, adheres=True, right=True, **more):
    """One line of our own format: a multiple choice whose evidence, grounding and answer are as asked for."""
    return {
        "schema_version": 1, "id": f"t{number}", "time": "2026-12-01T08:00:00Z", "tool": "test", "outcome": "answered",
        "query_id": f"q{number}", "query": text("Is the usual starting dose 5 mg once daily?"), "task": "mcq",
        "retrieved": [{"id": "a", "rank": 1, "content": text(FOUND if hit else OTHER)}],
        "answer": text("Yes." if right else "No."), "reference": text("usual starting dose is 5 mg once daily"),
        "expected": "yes", "options": {"yes": text("yes"), "no": text("no")},
        "grades": [{"grader": "pharmacists", "metric": "adherence", "outcome": "scored",
                    "score": 0.9 if adheres else 0.1}],
        **more,
    }  # fmt: skip


def text(words):
    return {"length": len(words), "text": words}


def written(path: Path, rows) -> Path:
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return path


def instruments(**changes) -> Instruments:
    content = changes.pop("content", None) or Content()
    judge = build_judge("recorded", JudgeOptions())
    made = Instruments(WORDS, normaliser(content), content, judge=judge, recorded=True)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def planted():
    """100 questions: 40 effective use, 36 lucky guesses of which 32 are right, 14 blind, 10 rejected."""
    blind = {"adheres": False, "right": False}
    groups = ((40, {}), (32, {"hit": False}), (4, {"hit": False, "right": False}), (14, blind),
              (10, {"hit": False, **blind}))  # fmt: skip
    rows = [kind for count, kind in groups for _ in range(count)]
    return [trace(number, **kind) for number, kind in enumerate(rows)]


def measured(path: Path, *, declared=READERS, folder=None, **changes):
    plan = Plan(
        [Source("planted", path)], instruments(**changes), Content(), folder=folder, declared=declared
    )
    return evaluate(plan)


def share(record, key):
    figure = record.systems[0].figures[key]
    return figure.get("k"), figure.get("n")


def test_the_accuracy_fallacy_is_found_in_planted_traces(tmp_path):
    record = measured(written(tmp_path / "t.jsonl", planted()))
    assert share(record, "generation.all.correct") == (72, 100)
    assert share(record, "retrieval.all.hit") == (54, 100)
    quadrants = ("effective_use", "lucky_guess", "information_blindness", "correct_rejection")
    assert [share(record, f"cue.all.{name}")[0] for name in quadrants] == [40, 36, 14, 10]
    assert share(record, "cue.all.ungrounded_correct") == (32, 100)
    assert share(record, "cue.all.attribution_error") == (32, 72)
    gap = record.systems[0].figures["cue.all.accuracy_gap"]
    assert gap["value"] == pytest.approx(18 / 100)
    assert gap["low"] > 0
    assert share(record, "cue.all.effective_use@task=mcq") == (40, 100)
    assert READERS in record.systems[0].figures["cue.all.effective_use"]["method"]


@pytest.mark.parametrize("grade", [None, 0.9, 0.1])
def test_no_broken_judge_gives_those_quadrants(tmp_path, grade):
    rows = planted()
    for row in rows:
        row["grades"] = [] if grade is None else [{**row["grades"][0], "score": grade}]
    figures = measured(written(tmp_path / "t.jsonl", rows)).systems[0].figures
    found = figures["cue.all.effective_use"]
    assert ("not_measured" in found) if grade is None else found["k"] != 40


def test_grades_that_nobody_declared_earn_no_cue(tmp_path):
    found = measured(written(tmp_path / "t.jsonl", planted()), declared="").systems[0].figures
    assert "no judge was audited" in found["cue.all.effective_use"]["not_measured"]
    assert found["retrieval.all.hit"]["n"] == 100


def test_without_filters_nothing_is_called_safe(tmp_path):
    found = measured(written(tmp_path / "t.jsonl", planted())).systems[0].figures
    for key in ("retrieval.all.safe_hit", "retrieval.all.dangerous.any", "cue.all.effective_use.safe"):
        assert found[key]["not_measured"] == "no filters", key
    # wrong answers alone would be known not to be safely right: 0 of them, by construction
    assert "not_measured" in found["generation.all.safe_correct"]


def test_without_the_level_of_meaning_no_share_of_it_is_printed_and_the_record_says_what_hit_rates_are(
    tmp_path,
):
    record = measured(written(tmp_path / "t.jsonl", [*planted(), trace(200, answer=text(""))]))
    found = record.systems[0].figures
    assert found["retrieval.all.level.substring"]["n"] > 0
    for key in ("retrieval.all.level.cosine", "generation.all.semantic"):
        assert "not_measured" in found[key], key
    assert any("lower bound" in limit for limit in record.limits)


def test_what_was_not_answered_is_no_success_whatever_a_grade_says(tmp_path):
    rows = [trace(0), {**trace(1), "outcome": "error", "error": "TimeoutError"}]
    rows[1].pop("answer")
    found = measured(written(tmp_path / "t.jsonl", rows)).systems[0].figures
    assert (found["cue.all.effective_use"]["k"], found["cue.all.effective_use"]["n"]) == (1, 1)
    assert (found["cue.all.unscored"]["k"], found["cue.all.unscored"]["n"]) == (1, 2)


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path):
    path = written(tmp_path / "t.jsonl", planted())

    class Appends(Instruments):
        def measure(self, items):
            with path.open("a") as stream:
                stream.write(json.dumps(trace(900)) + "\n")
            return super().measure(items)

    plain = instruments()
    growing = Appends(**{name: getattr(plain, name) for name in Instruments.__dataclass_fields__})
    with pytest.raises(UsageError, match="changed while it was read"):
        evaluate(Plan([Source("s", path)], growing, Content()))


def test_bad_lines_are_named_and_the_good_ones_kept(tmp_path):
    rows = [trace(0), "{half\n", trace(1), {**trace(2), "outcome": 7}, trace(1)]
    record = measured(written(tmp_path / "t.jsonl", rows))
    assert [item.id for item in record.systems[0].items] == ["q0", "q1"]
    source = record.systems[0].source
    assert (source.bad_lines, [bad.line for bad in source.bad]) == (3, [2, 4, 5])
    assert source.bad[1].field == "outcome"


def test_a_file_without_one_good_line_is_refused(tmp_path):
    with pytest.raises(UsageError, match="no question that can be read"):
        measured(written(tmp_path / "t.jsonl", ["{half\n"] * 3))


def test_what_is_not_known_is_not_measured_and_never_zero(tmp_path):
    bare = {
        name: value
        for name, value in trace(0).items()
        if name not in ("answer", "retrieved", "reference", "grades")
    }
    empty = {**trace(1), "retrieved": []}
    record = measured(written(tmp_path / "t.jsonl", [bare, empty]))
    first, second = record.systems[0].items
    assert not {"hit", "correct", "adherence", "rouge_l"} & set(first.values)
    assert second.values["hit"] == 0  # nothing was retrieved, and that is known
    assert share(record, "retrieval.all.hit") == (0, 1)


def test_a_stopped_run_goes_on_where_it_stopped_and_ends_the_same(tmp_path):
    rows = [trace(number, hit=number % 3 == 0) for number in range(2 * BATCH + 5)]
    path, folder, asked = written(tmp_path / "t.jsonl", rows), tmp_path / "partial", []

    class Stops(Instruments):
        def measure(self, items):
            if len(asked) == 1:
                raise KeyboardInterrupt
            asked.append(len(items))
            return super().measure(items)

    plain = instruments()
    stopping = Stops(**{name: getattr(plain, name) for name in Instruments.__dataclass_fields__})
    with pytest.raises(KeyboardInterrupt):
        evaluate(Plan([Source("s", path)], stopping, Content(), folder=folder))
    (ledger,) = folder.glob("*.jsonl")
    with ledger.open("ab") as stream:
        stream.write(b'{"id": "cut o')
    counted = []

    class Counts(Instruments):
        def measure(self, items):
            counted.append(len(items))
            return super().measure(items)

    again = Counts(**{name: getattr(plain, name) for name in Instruments.__dataclass_fields__})
    resumed = evaluate(Plan([Source("s", path)], again, Content(), folder=folder))
    assert counted == [BATCH, 5]
    whole = evaluate(Plan([Source("s", path)], instruments(), Content()))
    assert resumed.systems == whole.systems
    assert resumed.judge == whole.judge  # what the judge said before the stop counts too


def test_another_threshold_begins_anew(tmp_path):
    path, folder = written(tmp_path / "t.jsonl", [trace(0)]), tmp_path / "partial"
    measured(path, folder=folder)
    measured(path, folder=folder, settings=Settings(k=5, levels=WORDS.levels))
    assert len(list(folder.glob("*.jsonl"))) == 2


def test_no_text_of_a_trace_is_in_the_record(tmp_path):
    canary = "Wilhelmina Featherstonehaugh"
    row = trace(0)
    for name in ("query", "answer", "reference"):
        row[name] = text(f"{row[name]['text']} {canary}")
    row["retrieved"][0]["content"] = text(f"{FOUND} {canary}")
    row["options"]["no"] = text(canary)
    folder = tmp_path / "partial"
    record = measured(written(tmp_path / "t.jsonl", [row]), folder=folder)
    kept = to_bytes(record) + b"".join(file.read_bytes() for file in folder.iterdir())
    assert canary.encode() not in kept
    assert from_bytes(to_bytes(record)) == record


def test_outcomes_of_the_judge_are_counted_from_the_records(tmp_path):
    rows = [trace(0), {**trace(1), "grades": []}]
    rows.append({**trace(2), "grades": [{**trace(2)["grades"][0], "score": 7.0}]})
    outcomes, reasons = told(measured(written(tmp_path / "t.jsonl", rows)).systems[0].items)
    assert outcomes["adherence"] == {"scored": 1, "unscored": 2}
    assert sum(count for why, count in reasons.items() if why.startswith("adherence: ")) == 2
    assert reasons["adherence: not recorded"] == 1


def test_two_systems_of_one_name_are_refused(tmp_path):
    path = written(tmp_path / "t.jsonl", [trace(0)])
    with pytest.raises(UsageError, match="label"):
        evaluate(Plan([Source("a", path), Source("a", path)], instruments(), Content()))


def test_the_shipped_audit_is_of_the_installed_packs_and_answers():
    content = Content()
    audit = read_judge_audit(content.path(SHIPPED))
    assert audit.answers.sha256 == load_kit(Content()).answers.sha256
    packs = {name: digest for name, digest in audit.judge.settings.items() if name.startswith("mitigations/")}
    assert packs
    assert packs == {name: sha256_file(content.path(name)) for name in packs}


def test_the_local_judge_has_not_earned_a_cue_and_the_record_says_by_which_figure():
    from clinsafe.protocols import ModelIdentity
    from clinsafe.reports.evidence import SystemIdentity
    from clinsafe.reports.rag_record import JudgeRecord

    audit = read_judge_audit(Content().path(SHIPPED))
    judge = JudgeRecord(identity=SystemIdentity.of(ModelIdentity("local")), audit=audit)
    standing = standing_of(judge, [])
    assert not standing.earned
    assert "kappa" in standing.reason
