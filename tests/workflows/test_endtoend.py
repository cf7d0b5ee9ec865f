"""End to end in a small world: what is searched and checked, going on after a stop, answers, the real guard."""

from __future__ import annotations

import pytest

from clinsafe.adapters import chat
from clinsafe.adapters.endpoint import Patience
from clinsafe.adapters.reference import FakeEncoder
from clinsafe.benchmarks.endtoend import figures as f
from clinsafe.benchmarks.endtoend.answers import ABSTAIN
from clinsafe.benchmarks.endtoend.outcomes import Setting
from clinsafe.content import Content
from clinsafe.errors import ContentError, UsageError
from clinsafe.workflows.endtoend import Plan, load_models, measure
from tests.adapters import embedding_server as es
from tests.adapters.chat_server import ChatServer, prompt_of
from tests.benchmarks.endtoend import kit

MODEL = "fake:words"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("world")
    return kit.write_data(root / "data"), Content(kit.write_overlay(root / "overlay"))


def run(world, guard=None, conflicts=lambda _a, _b: False, **plan):
    folder, content = world
    plan = Plan(**{"models": (MODEL,), "ks": (4, 2), "data": folder} | plan)
    return measure(plan, content, guard or kit.Oracle(), conflicts)


@pytest.fixture(scope="module")
def result(world):
    return run(world, kit.Oracle(misses=["hedging"]))


def figure(result, metric, system="bm25", arm="after", k=4, corpus="mixed", hazard="all", form=None):
    return result.figures[f.key(hazard, metric, Setting(system=system, k=k, corpus=corpus, arm=arm), form)]


def test_every_system_arm_k_and_corpus_is_measured_on_every_query(result):
    systems = ["fake_words", "bm25", "hybrid"]
    assert result.systems == systems
    settings = {(one.system, one.arm, one.k, one.corpus) for one in result.outcomes}
    assert len(settings) == 3 * 5 * 2 * 2
    assert len(result.outcomes) == len(settings) * 6
    assert {one.query for one in result.outcomes} == {f"e2e-{n}" for n in range(6)}


@pytest.mark.parametrize("system", ["fake_words", "bm25", "hybrid"])
def test_the_guard_is_told_from_those_that_look_at_nothing(result, system):
    def of(metric, arm, corpus="mixed"):
        return figure(result, metric, system, arm, corpus=corpus).value

    before = of("dangerous", "before")
    assert before > 0
    missed = {one.query for one in result.outcomes if one.system == system and one.k == 4 and one.arm == "after"
              and one.hazard == "hedging" and one.reached}  # fmt: skip
    assert of("dangerous", "disabled") == before
    assert of("dangerous", "after") < before
    marked = figure(result, "flagged", system)
    assert (marked.k, marked.value < 1) == (marked.n - len(missed), bool(missed))
    assert (of("flagged", "always_flag"), of("right_flagged", "always_flag", "control")) == (1, 1)
    assert (of("flagged", "always_withhold"), of("right_shown", "always_withhold", "control")) == (0, 0)
    assert (of("right_flagged", "after", "control"), of("right_shown", "after", "control")) == (0, 1)
    assert of("distractor_flagged.share", "after", "control") == 0
    assert of("lost", "after") == 0


def test_the_change_is_there_for_each_hazard_and_what_was_missed_did_not_change(result):
    assert figure(result, "dangerous.change", hazard="hedging").value == 0
    assert figure(result, "dangerous.change").n == 6


def test_what_was_searched_and_what_was_not_measured_is_said(result):
    about, notes = "\n".join(result.about), "\n".join(result.notes)
    assert "6 queries" in about
    assert "hidden from their own query" in about
    assert "generated answers: not measured" in notes
    assert "fake model" in notes
    assert "item 8 asks for at least 120" in notes


def test_a_guard_that_cannot_check_is_never_credited(world):
    found = run(world, kit.Oracle(unchecked=["negation", "numerical"]), dummies=False, ks=(4,))
    assert figure(found, "unchecked").k == 2
    assert figure(found, "flagged").k == 4
    assert (
        figure(found, "dangerous", hazard="negation").value
        == figure(found, "dangerous", arm="before", hazard="negation").value
    )


class LosesOne(kit.Oracle):
    def check(self, asked, passages, /, *, k=None):
        return super().check(asked, list(passages)[1:], k=k)


def test_a_guard_that_loses_passages_is_told_on(world):
    found = run(world, LosesOne(), dummies=False, ks=(4,))
    assert any("lost passages of 6 queries" in note for note in found.notes)
    assert figure(found, "lost").value == 1


# ── going on ───────────────────────────────────────────────────────────────────────────────────


def test_a_run_that_was_stopped_goes_on_and_nothing_is_done_twice(world, tmp_path, monkeypatch):
    encoded = []
    once = FakeEncoder.encode
    monkeypatch.setattr(
        FakeEncoder, "encode", lambda self, texts: encoded.append(len(texts)) or once(self, texts)
    )

    class Stopped(kit.Oracle):
        def check(self, asked, passages, /, *, k=None):
            if self.calls == 9:
                raise KeyboardInterrupt
            return super().check(asked, passages, k=k)

    whole = run(world, kit.Oracle(), dummies=False)
    stopped, second = Stopped(), kit.Oracle()
    stopped.__class__.__name__ = "Oracle"
    with pytest.raises(KeyboardInterrupt):
        run(world, stopped, dummies=False, out=tmp_path / "run")
    encoded.clear()
    again = run(world, second, dummies=False, out=tmp_path / "run")
    assert again.figures == whole.figures
    assert again.outcomes == whole.outcomes
    assert encoded == [6], "the queries alone: every passage's vector was kept"
    # one empty call asks for the policy; eight checks were kept
    assert second.calls == 1 + 3 * 2 * 2 * 6 - 8
    third = kit.Oracle()
    run(world, third, dummies=False, out=tmp_path / "run")
    assert third.calls == 1


def test_another_guard_or_other_queries_are_measured_anew_with_the_same_vectors(world, tmp_path, monkeypatch):
    usual = {"dummies": False, "ks": (2,), "out": tmp_path / "run"}
    first = run(world, **usual)
    encoded = []
    once = FakeEncoder.encode
    monkeypatch.setattr(
        FakeEncoder, "encode", lambda self, texts: encoded.append(len(texts)) or once(self, texts)
    )
    loses = run(world, LosesOne(), **usual)
    assert figure(loses, "lost", k=2).value == 1
    assert encoded == [6]
    changed = Content(
        kit.write_overlay(tmp_path / "overlay", lambda rows: rows[0].update(query="other words"))
    )
    anew = kit.Oracle()
    run((world[0], changed), anew, **usual)
    slower = kit.Oracle()
    run(world, slower, **usual, settings={"seconds": "1"})
    assert anew.calls == slower.calls == 1 + 3 * 2 * 6
    assert run(world, **usual).figures == first.figures


# ── what cannot be measured ────────────────────────────────────────────────────────────────────


def test_a_model_that_fails_on_some_texts_is_measured_on_the_others(world, monkeypatch):
    once = FakeEncoder.encode

    def sometimes(self, texts):
        if any("velantine is given a day" in text or "plain3word0" in text for text in texts):
            raise ValueError("boom")
        return once(self, texts)

    monkeypatch.setattr(FakeEncoder, "encode", sometimes)
    found = run(world, dummies=False, ks=(4,))
    notes = "\n".join(found.notes)
    assert "passages got no vector" in notes
    assert "fake_words: 1 queries could not be searched" in notes
    assert figure(found, "reached", "fake_words").n == 5
    assert figure(found, "reached", "hybrid").n == 5
    assert figure(found, "reached", "bm25").n == 6


@pytest.mark.parametrize("plan", [{"ks": ()}, {"ks": (0,)}, {"ks": (5, 5)}, {"most": -1}, {"max_calls": -1}])
def test_a_plan_without_sense_is_refused(plan):
    with pytest.raises(UsageError):
        Plan(**plan)


@pytest.mark.parametrize("specs", [(), ("fake:hash", "fake_hash"), ("token-jaccard:x",)])
def test_models_that_cannot_search_are_refused(specs):
    with pytest.raises(UsageError):
        load_models(specs)


def test_a_folder_without_the_files_is_one_line(world, tmp_path, monkeypatch):
    monkeypatch.delenv("CLINSAFE_DATA", raising=False)
    with pytest.raises(UsageError, match="CLINSAFE_DATA"):
        run(world, data=None)
    with pytest.raises(UsageError, match=r"medquad_ghr\.jsonl\.gz: no such file"):
        run(world, data=tmp_path)
    (tmp_path / "medquad_ghr.jsonl.gz").write_bytes(b"not gzip")
    with pytest.raises(ContentError):
        run(world, data=tmp_path)


# ── generated answers ──────────────────────────────────────────────────────────────────────────


def believing(prompt):
    """Repeats the first contradicting sentence that is not marked."""
    context = prompt.partition("Passages:")[2].partition("Question:")[0]
    for block in context.split("\n\n"):
        if "[CONFLICT]" in block:
            continue
        for number in range(len(kit.WORLD)):
            if kit.query(number).false in block:
                return kit.query(number).false
    return ABSTAIN


def literal(sentence, answer):
    """A stack of filters that knows the six sentences: another one of the pair is a conflict."""
    pairs = [(kit.query(n).true, kit.query(n).false) for n in range(len(kit.WORLD))]
    return any({sentence, answer} == set(pair) for pair in pairs)


@pytest.fixture
def server():
    with ChatServer(believing).running() as running:
        yield running


def generator(server, **patience):
    return chat.load("served", server.url, patience=Patience(sleep=lambda _s: None, **patience))


def answered(world, server, tmp_path, **plan):
    given = {"generator": generator(server), "generator_name": "served", "dummies": False, "ks": (2,)} | plan
    return run(world, conflicts=literal, **given)


def test_answers_before_repeat_the_contradiction_and_answers_after_do_not(world, server, tmp_path):
    found = answered(world, server, tmp_path)
    before = figure(found, "answer_repeats", "fake_words", "before", k=2)
    assert before.k > 0
    assert figure(found, "answer_abstained", "fake_words", "after", k=2).value == 1
    change = figure(found, "answer_repeats.change", "fake_words", k=2)
    assert change.value < 0
    prompts = [prompt_of(request) for request in server.requests]
    assert len(prompts) == len(set(prompts)) <= len(found.answers) == 12
    assert not any("not measured" in note for note in found.notes)


def test_answers_are_kept_and_failures_are_asked_again(world, server, tmp_path):
    server.script = [es.raw(b"{}")]
    first = answered(world, server, tmp_path, out=tmp_path / "run")
    assert figure(first, "answer_failed", "fake_words", "before", k=2).k == 1
    assert [row.reason for row in first.answers if row.status == "failed"] == ["BadAnswer"]
    again = answered(world, server, tmp_path, out=tmp_path / "run")
    assert figure(again, "answer_failed", "fake_words", "before", k=2).k == 0
    prompts = [prompt_of(request) for request in server.requests]
    assert len(prompts) == len(set(prompts)) + 1, "the one that failed"


def test_no_more_prompts_are_sent_than_allowed(world, server, tmp_path):
    found = answered(world, server, tmp_path, max_calls=5)
    assert len(server.requests) == 5
    assert sum(row.status == "not_asked" for row in found.answers) > 0
    assert [note for note in found.notes if "--max-calls 5 is used up" in note]
    asked = [figure(found, "answer_failed", "fake_words", arm, k=2).n for arm in ("before", "after")]
    assert sum(asked) == sum(row.status != "not_asked" for row in found.answers)


def test_a_service_that_refuses_or_is_gone_is_not_asked_on(world, server, tmp_path):
    server.script = [es.raw(b'{"error": {"code": "invalid_api_key"}}')] * 50
    found = answered(world, server, tmp_path)
    assert len(server.requests) == 1
    assert any("401" in note for note in found.notes)
    server.script = [es.raw(b"{}")] * 50
    found = answered(world, server, tmp_path)
    assert len(server.requests) == 1 + 3
    assert sum(row.status == "failed" for row in found.answers) == 4
    assert figure(found, "reached", k=2).n == 6, "what was measured before is not lost"


# ── the real guard ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_real_guard_marks_what_its_filters_can_read(world):
    from clinsafe.workflows.guarding import build_guard

    found = run(world, build_guard(model="", seconds=0), dummies=False, ks=(4,))
    assert figure(found, "lost").value == 0
    assert figure(found, "flagged", hazard="negation").value == 1
    assert figure(found, "dangerous").value < figure(found, "dangerous", arm="before").value
    assert figure(found, "right_shown", corpus="control").value == 1
    assert figure(found, "unchecked").value == 0
