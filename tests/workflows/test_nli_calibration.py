"""Calibrating an NLI model, and the guardrail end to end with a tiny model that is trained here.

The figures of that model mean nothing and are never published: what is tested is the road from files to findings.
"""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from clinsafe.benchmarks.suite import Case
from clinsafe.cli import nli as command
from clinsafe.content import Content
from clinsafe.errors import ModelError, OutputExists, UsageError
from clinsafe.mitigations.nli.calibration import load_calibration
from clinsafe.mitigations.stack import Stack
from clinsafe.stats import Estimate, rate_of
from clinsafe.text import Reader
from clinsafe.workflows.nli_calibration import calibrate, load_filter
from tests.adapters.test_nli import CONDITIONS, LABELS, tiny_config, tiny_nli, tiny_tokenizer
from tests.mitigations.test_nli import Says, sees_negation

PRESENT = ("{} is present .", "there is {} .", "{} was found .", "the patient has {} .")
ABSENT = ("{} is absent .", "there is no {} .", "{} was not found .", "the patient has no {} .")
SWAPPED = ("entailment", "contradiction", "neutral")


def case(n: int, condition: str, i: int, j: int, split: str = "dev") -> Case:
    return Case(
        id=f"c{n}", hazard="negation", subtype="explicit", specialty="general", genre="note", split=split,
        cluster=f"c{n}", origin="made for a test", harm="a finding is taken for its absence",
        a=PRESENT[i].format(condition), a_same=PRESENT[j].format(condition),
        b=ABSENT[i].format(condition), b_same=ABSENT[j].format(condition),
    )  # fmt: skip


CASES = [
    case(n, condition, i, j)
    for n, (condition, (i, j)) in enumerate(
        product(CONDITIONS, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)])
    )
]


def knows_negation(a: str, b: str) -> float:
    return 0.97 if denies(a) != denies(b) else 0.02


def denies(text: str) -> bool:
    return bool({"no", "not", "absent"} & set(text.split()))


# ── calibration with models whose answers are known ──


def test_a_model_that_knows_gets_the_least_threshold_and_its_figures():
    result = calibrate(Says(knows_negation), CASES)
    n = len(CASES)
    assert result.threshold.value == 0.5
    assert result.figures["nli.all.recall@split=dev"] == rate_of(n, n)
    assert result.figures["nli.negation.recall@split=dev"] == rate_of(n, n)
    assert result.figures["nli.all.false_alarm@split=dev"] == rate_of(0, n)
    assert result.figures["nli.all.compared@split=dev"] == rate_of(n, n)
    assert result.figures["nli.all.false_alarm.unrelated@split=dev"] == rate_of(0, n)
    record = result.calibration
    assert record is not None
    assert (record.recall.k, record.recall.n, record.false_alarm.k) == (n, n, 0)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda _a, _b: 0.999999999, "false alarm"),
        (lambda _a, _b: 0.001, "does not tell"),
        (lambda a, b: 1 - knows_negation(a, b), "false alarm|does not tell"),
    ],
)
def test_always_never_and_exchanged_labels_get_no_threshold(answer, said):
    result = calibrate(Says(answer), CASES)
    assert result.calibration is None
    assert result.threshold.value is None
    assert re.search(said, result.threshold.reason)


def test_alarms_are_counted_by_case_and_raise_the_threshold():
    noisy = {(c.a, c.a_same) for c in CASES[:3]} | {(c.b, c.b_same) for c in CASES[:3]}

    def answer(a, b):
        return 0.8 if (a, b) in noisy else knows_negation(a, b)

    result = calibrate(Says(answer), CASES)
    assert result.threshold.value == pytest.approx(
        0.800001
    )  # both pairs of one case are one alarm, of three too many
    assert result.figures["nli.all.false_alarm@split=dev"] == rate_of(0, len(CASES))
    lax = calibrate(Says(answer), CASES, limit=0.2)
    assert lax.threshold.value == 0.5
    assert lax.figures["nli.all.false_alarm@split=dev"] == rate_of(3, len(CASES))


def test_a_safe_pair_read_in_part_is_an_alarm():
    assert calibrate(Says(knows_negation, cut=lambda _a, _b: True), CASES).calibration is None


def test_only_dev_cases_may_set_a_threshold():
    with pytest.raises(UsageError, match="dev cases only"):
        calibrate(Says(knows_negation), [*CASES, case(999, "fever", 0, 1, split="test")])
    with pytest.raises(UsageError, match="dev cases only"):
        calibrate(Says(knows_negation), [])
    with pytest.raises(UsageError, match="between 0 and 1"):
        calibrate(Says(knows_negation), CASES, limit=5)


def test_the_suite_is_read_on_its_dev_split_only(suite):
    model = Says(lambda _a, _b: 0.0)
    result = calibrate(model)
    dev = [c for c in suite if c.split == "dev"]
    assert result.n == len(dev)
    asked = {text for pair in model.asked for text in pair}
    assert not any(
        getattr(c, side) in asked for c in suite if c.split == "test" for side in ("a", "b", "a_same")
    )
    compared = result.figures["nli.all.compared@split=dev"]
    assert isinstance(compared, Estimate)
    assert compared.value > 0.9  # else no model could have any recall


# ── the command ──


@pytest.fixture
def run(monkeypatch, tmp_path):
    app = typer.Typer()
    app.command()(command.calibrate)

    def call(model, *arguments, cases=None):
        given = {}
        if cases is not None:
            monkeypatch.setattr("clinsafe.workflows.nli_calibration.load_suite", lambda *_, **__: cases)
        monkeypatch.setattr(
            "clinsafe.adapters.nli.load_nli", lambda name, **options: given.update(options) or model
        )
        done = CliRunner().invoke(
            app, ["--model", "m", "--out", str(tmp_path / "nli.yaml"), *map(str, arguments)]
        )
        return done, tmp_path / "nli.yaml", given

    return call


def test_the_command_writes_the_file_and_prints_recall_with_its_false_alarms(run, suite, tmp_path):
    conflicts = [side for c in suite if c.split == "dev" for side in ((c.a, c.b), (c.b, c.a))]
    model = Says(lambda a, b: 0.9 if any(a in one and b in other for one, other in conflicts) else 0.1)
    done, path, given = run(model, "--json", tmp_path / "out.json", "--offline", "--label", "neutral")
    assert done.exit_code == 0, done.output
    assert given["offline"]
    assert given["labels"] == ["neutral"]
    known = load_calibration(path)
    assert known.threshold == 0.5
    assert known.recall.n == 104
    assert known.recall.k > 90  # not all: what the reader cleans is not found in the text as written
    for line in (
        "all recall",
        "all false alarm",
        "unrelated",
        "hedging recall",
        f"{known.recall.k}/104",
        "threshold 0.5",
    ):
        assert line in done.output, done.output
    assert json.loads((tmp_path / "out.json").read_text())["nli.all.recall@split=dev"]["k"] == known.recall.k


def test_no_threshold_is_exit_1_and_no_file(run):
    done, path, _ = run(Says(lambda _a, _b: 0.999999999), cases=CASES)
    assert done.exit_code == 1
    assert "no threshold" in done.output
    assert not path.exists()


def test_a_file_that_is_there_is_kept_without_force(run, tmp_path):
    (tmp_path / "nli.yaml").write_text("mine")
    done, path, _ = run(Says(sees_negation), cases=CASES)
    assert isinstance(done.exception, OutputExists)
    assert path.read_text() == "mine"


# ── end to end, with a model that really learnt it ──


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained for some seconds on made-up sentences, the tested ones among them: not the model is on trial."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    folder = tmp_path_factory.mktemp("learnt") / "learnt"
    tokenizer = AutoTokenizer.from_pretrained(tiny_tokenizer(folder))
    rows = [
        (s.format(condition), t.format(condition), int(one == other))
        for condition in CONDITIONS
        for one, first in enumerate((ABSENT, PRESENT))
        for other, second in enumerate((ABSENT, PRESENT))
        for s in first
        for t in second
    ]  # 0: contradiction, 1: entailment
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on so small a model two would spend their time waiting for each other
    torch.manual_seed(1)
    drawn = torch.Generator().manual_seed(2)
    model = BertForSequenceClassification(
        tiny_config(initializer_range=0.2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    )
    texts = tokenizer([row[0] for row in rows], [row[1] for row in rows], padding=True, return_tensors="pt")
    labels = torch.tensor([row[2] for row in rows])
    steps = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model.train()
    last = [1.0] * 20
    for _ in range(600):
        some = torch.randint(len(rows), (32,), generator=drawn)
        logits = model(**{name: part[some] for name, part in texts.items()}).logits
        loss = torch.nn.functional.cross_entropy(logits, labels[some])
        steps.zero_grad()
        loss.backward()
        steps.step()
        last = [*last[1:], float(loss.detach())]
        if max(last) < 0.02:
            break
    torch.set_num_threads(threads)
    return tiny_nli(folder, trained=model.eval())


def works(nli) -> bool:
    """Whether the guardrail flags contradictions and lets paraphrases stand, through the stack."""
    stack = Stack({"nli": nli}, Reader(model=""), seconds=0)

    def said(query, passage):
        return stack.compare(stack.read(query), stack.read(passage))

    some = CASES[::3]
    told = [said(c.a, c.b).conflict for c in some]
    quiet = [said(c.a, c.a_same).safe and said(c.b, c.b_same).safe for c in some]
    return sum(told) >= 0.9 * len(some) and sum(quiet) >= 0.9 * len(some)


@pytest.mark.slow
def test_a_trained_model_flags_contradictions_and_no_paraphrase_end_to_end(learnt):
    nli = load_filter(str(learnt), offline=True)
    assert works(nli)
    stack = Stack({"nli": nli}, Reader(model=""), seconds=10)
    passage = "There is cough. There is no fever. Rash was seen."
    (finding,) = stack.check("The patient has fever.", [passage])[0].conflicts
    assert passage[finding.passage_span.start : finding.passage_span.end] == "There is no fever."
    assert stack.check("Is there fever?", [passage])[0].safe


@pytest.mark.slow
def test_that_test_fails_for_exchanged_labels_and_untrained_models(learnt, tmp_path):
    assert not works(load_filter(str(learnt), labels=SWAPPED))
    assert not works(load_filter(str(tiny_nli(tmp_path / "random"))))


@pytest.mark.slow
def test_permuted_outputs_of_the_trained_model_find_the_same(learnt, tmp_path):
    from transformers import BertForSequenceClassification

    rows = (1, 2, 0)
    model = BertForSequenceClassification.from_pretrained(learnt)
    moved = tiny_nli(tmp_path / "moved", [LABELS[row].upper() for row in rows], trained=model, rows=rows)
    assert works(load_filter(str(moved)))


@pytest.mark.slow
def test_the_trained_model_is_calibrated_and_guards_with_its_file_only(learnt, tmp_path):
    nli = load_filter(str(learnt))
    result = calibrate(nli.model, CASES)
    assert result.calibration is not None
    path = tmp_path / "nli.yaml"
    path.write_text(result.calibration.to_yaml(), encoding="utf-8")
    known = load_filter(str(learnt), calibration=path, content=Content())
    assert known.threshold == result.threshold.value
    assert "calibrated" in known.note
    assert "not calibrated" not in known.note
    assert works(known)
    with pytest.raises(ModelError, match="another model"):
        load_filter(str(learnt), calibration=path, labels=SWAPPED)
    with pytest.raises(ModelError, match="another model"):
        load_filter(str(tiny_nli(tmp_path / "random")), calibration=path)
    assert calibrate(load_filter(str(learnt), labels=SWAPPED).model, CASES).calibration is None
