"""The judge self-audit as a whole: from installed content to a verdict, a record and an exit code."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from clinsafe.benchmarks.suite import Case
from clinsafe.cli import rag_audit as cli
from clinsafe.content import Content
from clinsafe.errors import ClinsafeError, ContentError, OutputExists, UsageError
from clinsafe.protocols import Judgement, JudgeTask, ModelIdentity
from clinsafe.rag.auditing.claim import Instrument, Support
from clinsafe.rag.auditing.evidence import standing_in
from clinsafe.rag.auditing.instruments import BatchInstrument, HitInstrument, dummies
from clinsafe.rag.auditing.readers import PROVISIONAL
from clinsafe.rag.auditing.record import JudgeIdentity, load_judge_audit, read_judge_audit
from clinsafe.stats import rate_of
from clinsafe.workflows import rag_audit as work
from tests.rag.auditing.labelled import knowing, plain_rows, said, truth, write_overlay
from tests.tiers import mined, write_mined

IDENTITY = JudgeIdentity(name="fake", metric="adherence", threshold=0.7, rubric_sha256="0" * 64)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_overlay(tmp_path_factory.mktemp("audit"), plain_rows())


@pytest.fixture(scope="module")
def kit(root: Path) -> work.Kit:
    return work.load_kit(Content(root))


def oracle(
    kit: work.Kit, change: Callable[[int, bool], Support] = lambda _, right: right, name: str = "oracle"
) -> Instrument:
    return knowing(name, truth(kit.cases, kit.rows), change)


def test_an_oracle_earns_and_what_knows_nothing_stands_beside_it(kit: work.Kit) -> None:
    result = work.audit_judges(oracle(kit), kit=kit)
    assert result.standing().earned
    assert result.instruments == ("oracle", "disabled", "always_yes", "always_no")
    assert not any(result.standing(one.name).earned for one in dummies())


@pytest.mark.parametrize("subject", dummies(), ids=lambda one: one.name)
def test_what_knows_nothing_never_earns_as_the_subject(kit: work.Kit, subject: Instrument) -> None:
    result = work.audit_judges(subject, kit=kit)
    assert result.instruments.count(subject.name) == 1
    assert not result.standing().earned


def test_only_test_cases_are_asked_unless_dev_is_wanted(kit: work.Kit, root: Path) -> None:
    assert {case.split for case in kit.cases} == {"test"}
    assert kit.suite.split == "test"
    dev = work.load_kit(Content(root), split="dev")
    assert {case.split for case in dev.cases} == {"dev"}
    assert dev.suite.sha256 != kit.suite.sha256
    with pytest.raises(UsageError, match="dev or test"):
        work.load_kit(Content(root), split="both")  # type: ignore[arg-type]


def test_tiers_have_keys_of_their_own(kit: work.Kit) -> None:
    result = work.audit_judges(dummies()[1], kit=kit)
    sets = {name.partition("on=")[2].partition(",")[0] for name in result.figures}
    assert sets == {"written", "answers"}
    assert all("split=test" in name for name in result.figures if "on=written" in name)


def test_a_mined_suite_is_a_tier_of_its_own(root: Path, few: list[Case], tmp_path: Path) -> None:
    mined_kit = work.load_kit(Content(root), suite=write_mined(tmp_path, mined(few)))
    figures = work.audit_judges(dummies()[1], kit=mined_kit).figures
    assert mined_kit.suite.tier == "generated"
    assert not any("on=written" in name for name in figures)
    assert figures["judge.all.false_support@instrument=always_yes,on=generated,split=test"] == rate_of(12, 12)


def test_detection_is_never_without_its_false_alarms(kit: work.Kit) -> None:
    figures = work.audit_judges(oracle(kit), kit=kit).figures
    for name in figures:
        if ".false_support@" in name:
            assert name.replace("false_support", "false_rejection") in figures


def test_a_dry_count_is_what_is_asked(kit: work.Kit) -> None:
    asked: list[object] = []

    def ask(task: object) -> bool:
        asked.append(task)
        return True

    work.audit_judges(HitInstrument("counting", ask), kit=kit)
    assert len(asked) == len(kit.tasks) == 3 * len(kit.cases) + 216


def test_two_of_one_name_are_refused(kit: work.Kit) -> None:
    with pytest.raises(UsageError, match="'a-b'"):
        work.audit_judges(oracle(kit, name="a:b"), [oracle(kit, name="a b")], kit=kit)


def test_progress_ends_before_its_total(kit: work.Kit) -> None:
    told: list[tuple[str, int, int]] = []
    work.audit_judges(oracle(kit), kit=kit, stage=lambda *now: told.append(now))
    assert told
    assert all(0 <= done < total == len(kit.tasks) for _, done, total in told)


def test_the_record_is_that_of_the_figures_and_holds_no_text(kit: work.Kit, tmp_path: Path) -> None:
    result = work.audit_judges(oracle(kit, lambda place, right: right or place % 9 == 0), kit=kit)
    text = work.record_of(result, IDENTITY).dump()
    path = tmp_path / "judge.json"
    path.write_text(text, encoding="utf-8")
    audit = load_judge_audit(path, judge=IDENTITY, answers_sha256=kit.answers.sha256)
    assert audit.measured() == result.figures
    assert not standing_in(audit).earned
    assert standing_in(audit).faults == result.standing().faults
    assert audit.supported["written"]
    assert not audit.rejected["answers"]
    shown = [s for case in kit.cases for s in (case.a, case.b, case.a_same, case.b_same)]
    assert not any(s in text for s in [*shown, *(row.answer for row in kit.rows)])


def test_a_judge_has_earned_only_by_an_audit_of_its_own(kit: work.Kit, root: Path, tmp_path: Path) -> None:
    who = ModelIdentity("oracle", "1", {"rules": "ab", "benchmarks/rubrics/support.yaml": "cd"}, {"t": "0"})
    path = tmp_path / "judge.json"
    audit = work.record_of(work.audit_judges(oracle(kit), kit=kit), work.identity_of(who, "adherence"))
    path.write_text(audit.dump(), encoding="utf-8")
    standing, found = work.load_standing(path, who, content=Content(root))
    assert standing.earned
    assert found == audit
    other_rubric = replace(who, files={**who.files, "benchmarks/rubrics/support.yaml": "ef"})
    assert work.load_standing(path, other_rubric, content=Content(root))[0].earned
    for other in (replace(who, revision="2"), replace(who, files={"rules": "xy"}), replace(who, name="else")):
        with pytest.raises(ContentError, match="audit the judge anew"):
            work.load_standing(path, other, content=Content(root))
    with pytest.raises(ContentError, match="threshold"):
        work.load_standing(path, who, content=Content(root), threshold=0.5)


def test_a_file_cannot_say_which_hazards_are_enough(kit: work.Kit, root: Path, tmp_path: Path) -> None:
    who = ModelIdentity("gap")
    gone = {row.claim for row in kit.rows if row.hazard == "hedging"}
    known = truth(kit.cases, kit.rows)
    gap = BatchInstrument("gap", lambda tasks: [None if t in gone else known[t] for t in tasks])
    audit = work.record_of(work.audit_judges(gap, kit=kit), work.identity_of(who, "adherence"))
    fewer = tuple(hazard for hazard in audit.hazards if hazard != "hedging")
    path = tmp_path / "judge.json"
    path.write_text(audit.model_copy(update={"hazards": fewer}).dump(), encoding="utf-8")
    assert "hedging" in work.load_standing(path, who, content=Content(root))[0].reason


def test_the_judge_of_a_spec_is_the_one_that_is_asked(monkeypatch: pytest.MonkeyPatch, kit: work.Kit) -> None:
    class Judge:
        identity = ModelIdentity("scripted", fake=True)

        def judge_many(self, tasks: Sequence[JudgeTask], /) -> list[Judgement]:
            return [Judgement("error", None, "busy") for _ in tasks]

    monkeypatch.setattr("clinsafe.workflows.rag_judges.build_judge", lambda *_: Judge())
    opened = work.open_judge("scripted")
    result = work.audit_judges(opened.instrument, kit=kit)
    assert opened.fake
    assert result.reasons == {"busy": len(kit.tasks)}
    assert not result.standing().earned
    for spec, metric in (
        ("scripted", "answer_relevancy"),
        ("recorded", "adherence"),
        ("recorded:me", "adherence"),
    ):
        with pytest.raises(UsageError):
            work.open_judge(spec, metric)


def test_other_labels_make_another_hash(kit: work.Kit, tmp_path: Path) -> None:
    readers = said(plain_rows(), "one", "two")
    readers[0]["label"] = "not_stated"
    other = work.load_kit(Content(write_overlay(tmp_path, plain_rows(), readers)))
    assert other.answers.sha256 != kit.answers.sha256
    assert other.answers.disagreed == 1


# ── the command ────────────────────────────────────────────────────────────────────────────────


def run(
    monkeypatch: pytest.MonkeyPatch, root: Path, judge: Callable[[], Instrument], *arguments: object
) -> Any:
    """The command with a judge of our own behind --judge."""

    def opened(*_: object) -> work.Opened:
        return work.Opened(judge(), IDENTITY, fake=True)

    monkeypatch.setattr(work, "open_judge", opened)
    app = typer.Typer()
    app.command()(cli.judges)
    return CliRunner().invoke(app, ["--content", str(root), "--metric", "literal", *map(str, arguments)])


def test_exit_0_with_record_and_mapping_where_it_has_earned(
    monkeypatch: pytest.MonkeyPatch, root: Path, kit: work.Kit, tmp_path: Path
) -> None:
    out, flat = tmp_path / "run", tmp_path / "flat.json"
    done = run(monkeypatch, root, lambda: oracle(kit), "--out", out, "--json", flat)
    assert done.exit_code == 0, done.output
    assert "has earned a CUE" in done.output
    assert "always_yes" in done.output
    assert max(map(len, done.output.replace(str(out), "").splitlines())) <= 200
    audit = read_judge_audit(out / "judge.json")
    assert audit.fake
    assert standing_in(audit).earned
    assert json.loads(flat.read_text("utf-8")).keys() == audit.figures.keys()
    again = run(monkeypatch, root, lambda: oracle(kit), "--out", out)
    assert isinstance(again.exception, OutputExists)


@pytest.mark.parametrize("place", range(3))
def test_exit_1_and_the_figure_that_failed(monkeypatch: pytest.MonkeyPatch, root: Path, place: int) -> None:
    done = run(monkeypatch, root, lambda: dummies()[place])
    assert done.exit_code == 1, done.output
    assert "has not earned a CUE" in done.output
    assert "kappa" in done.output


def test_tables_fit_80_columns_and_print_ids_alone(
    monkeypatch: pytest.MonkeyPatch, root: Path, kit: work.Kit
) -> None:
    done = run(monkeypatch, root, lambda: oracle(kit, lambda _, right: not right, "a" * 60))
    assert done.exit_code == 1
    assert "\x1b" not in done.output
    verdict = done.output.index("has not earned")
    wide = [
        line for line in done.output[: done.output.rindex("\n", 0, verdict)].splitlines() if len(line) > 80
    ]
    assert not wide
    assert kit.cases[0].id in done.output
    assert not any(case.a in done.output or case.b in done.output for case in kit.cases)


def test_provisional_labels_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = write_overlay(tmp_path, plain_rows(), said(plain_rows(), "one"))
    kit = work.load_kit(Content(root))
    done = run(monkeypatch, root, lambda: oracle(kit))
    assert " ".join(PROVISIONAL.split()[:4]) in " ".join(done.output.split())
    assert done.exit_code == 1  # an oracle, and yet nothing is earned by the writer's own labels
    assert "labels are provisional" in " ".join(done.output.split())


def test_a_dry_run_asks_nobody(
    monkeypatch: pytest.MonkeyPatch, root: Path, kit: work.Kit, tmp_path: Path
) -> None:
    def never() -> Instrument:
        raise AssertionError("asked")

    done = run(monkeypatch, root, never, "--dry-run", "--out", tmp_path / "x")
    assert done.exit_code == 0
    assert f"{len(kit.tasks)} questions" in " ".join(done.output.split())
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["--split", "train"], UsageError),
        (["--metric", "bleu"], UsageError),
        (["--suite", "/nowhere/mined.jsonl"], UsageError),
        (["--json", "/nowhere/flat.json"], UsageError),
        (["--content", "/nowhere"], UsageError),
        (["--out", __file__], UsageError),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, root: Path, arguments: list[str], kind: type[ClinsafeError]
) -> None:
    def never() -> Instrument:
        raise AssertionError("asked")

    assert isinstance(run(monkeypatch, root, never, *arguments).exception, kind)


def test_broken_answers_stop_it_with_line_and_field(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = plain_rows()
    rows[5]["kind"] = "perhaps"
    found = run(monkeypatch, write_overlay(tmp_path, rows), lambda: dummies()[0]).exception
    assert isinstance(found, ContentError)
    assert (found.line, found.field, found.exit_code) == (6, "kind", 2)
