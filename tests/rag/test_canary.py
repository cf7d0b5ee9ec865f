"""Decision D11: without ``text=True`` no word of any text leaves the application, in whatever field it was told."""

from __future__ import annotations

import logging

import pytest

from clinsafe.guarded import GuardedAnswer, GuardedPassage
from clinsafe.oversight.keys import LogKey
from clinsafe.protocols import Passage

CANARY = "Marigold Quennell-Thrupp drinks hemlock"
KEY = LogKey(bytes(range(32)))


def tell_everything(record) -> None:
    """The canary in every field that takes a word."""
    error = type(CANARY, (Exception,), {})

    @record
    def answer(question: str) -> str:
        record.retrieved([CANARY, {"id": CANARY, "text": CANARY, "source": CANARY, "score": 1.0}])
        record.reranked([CANARY])
        row = GuardedPassage(
            Passage(CANARY, CANARY, source=CANARY),
            1,
            1,
            CANARY,
            (CANARY,),
            unchecked={CANARY: CANARY},
            annotated=CANARY,
        )  # type: ignore[arg-type]
        record.retrieved(
            GuardedAnswer(CANARY, True, (row,), review=(CANARY,), notes=(CANARY,), policy=CANARY)
        )
        record.context([CANARY])
        record.prompt(f"{CANARY} {CANARY}", version=CANARY)
        record.generated(model=CANARY)
        record.took(CANARY, 1.0)
        record.note(
            query_id=CANARY, query_version=CANARY, task=CANARY, slices={CANARY: CANARY}, access={"role": CANARY},
            corpus=CANARY, eligible=[CANARY], allowed=[CANARY], versions={"index": CANARY}, relevance={CANARY: 1.0},
            citations=[{"claim": (0, 1), "passage": CANARY}], reference=CANARY,
            grades=[{"grader": CANARY, "metric": CANARY, "outcome": "scored", "score": 1.0, "rationale": CANARY}],
        )  # fmt: skip
        record.note(cost={"amount": 1.0, "currency": CANARY})  # a fault of the recorder's own
        record.note(**{CANARY: 1})
        record.answer(CANARY)
        raise error(CANARY)

    with pytest.raises(error):
        answer(CANARY)


def words(text: str) -> list[str]:
    return [word for word in CANARY.split() if word.lower() in text.lower()]


@pytest.mark.parametrize("digest", [None, KEY.digest])
def test_no_word_is_written_or_logged(make, tmp_path, caplog, capfd, digest):
    record = make(digest=digest, about={"corpus": CANARY})
    with caplog.at_level(logging.DEBUG):
        tell_everything(record)
    written = "".join(path.read_text("utf-8") for path in tmp_path.iterdir())
    assert record.written == 1, "the trace is there, so the test looks at something"
    assert words(written + caplog.text + "".join(capfd.readouterr())) == []
    assert str(len(CANARY)) in written
    assert (KEY.digest(CANARY) in written) == (digest is not None)


def test_with_text_the_words_are_there(make, traces):
    record = make(text=True)
    tell_everything(record)
    (trace,) = traces()
    for place in (
        trace["query"],
        trace["answer"],
        trace["prompt"],
        trace["reference"],
        trace["retrieved"][0]["content"],
    ):
        assert CANARY in place["text"]


def test_an_id_made_from_a_text_is_hidden_and_still_tells_passages_apart(make, traces):
    record = make()
    with record.question("q"):
        record.retrieved(["one", "two", {"id": "doc-7", "text": "three"}])
        record.reranked(["two", {"id": "doc-7", "text": "three"}])
    (trace,) = traces()
    assert [hit["id"] for hit in trace["retrieved"]] == ["hidden-1", "hidden-2", "doc-7"]
    assert [hit["id"] for hit in trace["reranked"]] == ["hidden-2", "doc-7"]
    assert "sha" not in str(trace)


def test_the_key_tells_equal_texts_and_another_key_does_not(make, traces):
    for digest in (KEY.digest, KEY.digest, LogKey(bytes(32)).digest):
        make(digest=digest)(lambda question: "x")("the same question")
    first, second, third = (trace["query"]["hmac"] for trace in traces())
    assert first == second != third
