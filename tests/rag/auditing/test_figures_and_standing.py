"""Figures of an instrument, and what it earns by them: nothing that knows nothing, and nothing by keeping silent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clinsafe.protocols import MetricKey
from clinsafe.rag.auditing.claim import Instrument, Support
from clinsafe.rag.auditing.evidence import standing_of, worst_support
from clinsafe.rag.auditing.figures import Measured, key, on_answers, on_quads, slug
from clinsafe.rag.auditing.instruments import BatchInstrument, dummies
from clinsafe.rag.standing import Standing
from clinsafe.stats import Estimate, Figure, NotMeasured, rate_of
from tests.rag.auditing.labelled import HAZARDS, knowing, quads, rows, truth

ROWS, QUADS = rows(), quads()
LABELS = {row.id: row.kind for row in ROWS}
TRUTH = truth(QUADS, ROWS)


def audited(instrument: Instrument) -> tuple[dict[str, Figure], Standing]:
    figures: dict[str, Figure] = {
        **on_quads(instrument, QUADS, on="written", split="test").figures,
        **on_answers(instrument, ROWS, LABELS).figures,
    }
    return figures, standing_of(figures, instrument.name, required=HAZARDS)


def of(measured: Measured, name: str) -> Estimate:
    found = measured.figures[name]
    assert isinstance(found, Estimate), found
    return found


def every(n: int, wrong: Support, when: bool) -> Callable[[int, bool], Support]:
    """Give `wrong` for every n-th claim whose truth is `when`, the truth for the rest."""
    return lambda place, right: wrong if right is when and place % n == 0 else right


def test_an_oracle_earns() -> None:
    figures, standing = audited(knowing("oracle", TRUTH))
    assert standing.earned, standing.reason
    assert standing.n == 216
    assert set(standing.hazards) == set(HAZARDS)
    assert all(isinstance(figure, Estimate) for figure in figures.values())


@pytest.mark.parametrize("instrument", dummies(), ids=lambda one: one.name)
def test_what_knows_nothing_never_earns(instrument: Instrument) -> None:
    assert not audited(instrument)[1].earned


def test_always_yes_supports_every_contradiction_and_always_no_rejects_everything() -> None:
    disabled, yes, no = (audited(one)[0] for one in dummies())
    where = {"on": "written", "split": "test"}
    assert yes[key("always_yes", "all", "false_support", **where)] == rate_of(120, 120)  # type: ignore[arg-type]
    assert no[key("always_no", "all", "false_rejection", **where)] == rate_of(120, 120)  # type: ignore[arg-type]
    assert no[key("always_no", "all", "false_support", **where)] == rate_of(0, 120)  # type: ignore[arg-type]
    assert isinstance(disabled[key("disabled", "all", "false_support", **where)], NotMeasured)  # type: ignore[arg-type]
    assert disabled[key("disabled", "all", "unscored", "answers")] == rate_of(216, 216)


def test_twelve_in_a_hundred_false_supports_do_not_earn() -> None:
    _, standing = audited(knowing("sloppy", TRUTH, every(8, True, False)))
    assert isinstance(standing.kappa, Estimate)
    assert standing.kappa.lower is not None
    assert standing.kappa.lower > 0.6
    assert not standing.earned
    assert "false support" in standing.reason


def test_a_low_rate_on_too_few_answers_does_not_earn_by_its_exact_bound() -> None:
    # 4 of 72 is 0.056, and its one-sided bound 0.12
    contradicted = [claim for row in ROWS if row.kind == "contradicted" for claim in [row.claim]]
    sloppy = set(contradicted[:4])
    instrument = BatchInstrument("few", lambda tasks: [TRUTH[t] or t in sloppy for t in tasks])
    _, standing = audited(instrument)
    assert isinstance(standing.false_support, Estimate)
    assert standing.false_support == rate_of(4, 72)
    assert standing.false_support.value < 0.10
    assert not standing.earned


def test_false_support_in_one_set_alone_does_not_earn() -> None:
    # perfect on the answers, blind on the suite; and the other way round on unstated answers
    suite_blind = BatchInstrument("suite_blind", lambda tasks: [TRUTH[t] or not t.question for t in tasks])
    unstated = {row.claim for row in ROWS if row.kind == "not_stated"}
    unstated_blind = BatchInstrument(
        "unstated_blind", lambda tasks: [TRUTH[t] or t in unstated for t in tasks]
    )
    for instrument, part in ((suite_blind, "on=written"), (unstated_blind, "unsupported")):
        figures, standing = audited(instrument)
        assert not standing.earned
        assert part in worst_support(figures, instrument.name)[0]


@pytest.mark.parametrize("share", [1, 4])
def test_a_judge_that_leaves_contradictions_unscored_does_not_earn(share: int) -> None:
    figures, standing = audited(knowing("silent", TRUTH, every(share, None, False)))
    assert not standing.earned
    assert isinstance(figures[key("silent", "all", "unscored", "answers")], Estimate)
    if share == 4:  # right wherever it speaks
        found = figures[key("silent", "all", "false_support", "answers")]
        assert isinstance(found, Estimate)
        assert found.value == 0
        assert found.upper is not None
        assert found.upper > 0.25


def test_silence_on_supported_answers_costs_agreement() -> None:
    figures, _ = audited(knowing("silent", TRUTH, every(3, None, True)))
    found = figures[key("silent", "all", "kappa", "answers")]
    assert isinstance(found, Estimate)
    assert found.value == 1.0
    assert found.n == 216 - 24
    assert found.lower is not None
    assert found.lower < 0.85


def test_a_hazard_without_verdicts_is_not_covered() -> None:
    gone = {row.claim for row in ROWS if row.hazard == "hedging"}
    instrument = BatchInstrument("gap", lambda tasks: [None if t in gone else TRUTH[t] for t in tasks])
    standing = audited(instrument)[1]
    assert "hedging" not in standing.hazards
    assert not standing.earned


def test_figures_of_a_case_that_was_worked_out_by_hand() -> None:
    # negation only: four quads; contradiction said to be supported in the first, unjudged in the second;
    # one paraphrase refused in the third (the other is fine), and one unjudged in the fourth
    some = [quad for quad in QUADS if quad.hazard == "negation"][:4]
    known = truth(some)
    known_and = dict(known)
    said: dict[object, Support] = dict(known_and)
    claims = list(known)
    said[claims[0]] = True
    said[claims[3]] = None
    said[claims[7]] = False
    said[claims[11]] = None
    found = on_quads(
        BatchInstrument("hand", lambda tasks: [said[t] for t in tasks]), some, on="written", split="dev"
    )
    support = of(found, "judge.negation.false_support@instrument=hand,on=written,split=dev")
    assert (support.k, support.n) == (1, 3)
    assert support.upper == rate_of(2, 4).upper
    reject = of(found, "judge.all.false_rejection@instrument=hand,on=written,split=dev")
    assert (reject.k, reject.n) == (1, 3)
    assert of(found, "judge.all.unscored@instrument=hand,on=written,split=dev").k == 2
    assert found.supported == (some[0].id,)
    assert found.rejected == (some[2].id,)
    assert found.unscored == (some[1].id, some[3].id)


def test_rows_of_one_source_are_one_case_that_fails_once() -> None:
    some = [row for row in ROWS if row.kind == "contradicted"][:10]
    same = [row.model_copy(update={"source": some[0].source}) for row in some[:5]] + some[5:]
    wrong = same[1].claim
    found = on_answers(
        BatchInstrument("j", lambda tasks: [t == wrong for t in tasks]), same, {r.id: r.kind for r in same}
    )
    figure = of(found, key("j", "all", "false_support", "answers"))
    assert (figure.k, figure.n) == (1, 6)


def test_rows_without_a_usable_label_are_not_asked() -> None:
    asked: list[object] = []
    instrument = BatchInstrument("j", lambda tasks: [asked.append(t) for t in tasks])  # type: ignore[func-returns-value]
    on_answers(instrument, ROWS, {ROWS[0].id: "supported"})
    assert asked == [ROWS[0].claim]


def test_nothing_to_ask_is_not_measured() -> None:
    for found in (on_quads(dummies()[1], [], on="written"), on_answers(dummies()[1], ROWS, {})):
        assert found.figures
        assert all(isinstance(one, NotMeasured) for one in found.figures.values())


@pytest.mark.parametrize("name", ["openai:gpt-4o mini", "a=b,c", "", "r/substring", "modèle"])
def test_any_name_makes_a_key_that_can_be_read_back(name: str) -> None:
    found = key(name, "all", "false_support.not_stated", "answers")
    assert str(MetricKey.parse(found)) == found
    assert f"instrument={slug(name)}," in found


def test_another_instruments_figures_do_not_count() -> None:
    figures, _ = audited(knowing("oracle", TRUTH))
    assert not standing_of(figures, "orac", required=HAZARDS).earned
    assert not standing_of({}, "oracle", required=HAZARDS).earned
