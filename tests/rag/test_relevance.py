"""R by levels: what fires, where, with which score; and that a broken R is told from a working one."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.adapters.reference import FakeEncoder
from clinsafe.errors import ModelError
from clinsafe.protocols import ModelIdentity
from clinsafe.rag.item import Context, Item
from clinsafe.rag.relevance import NO_ENCODER, NO_REFERENCE, Match, relevance
from clinsafe.rag.settings import Settings, Thresholds
from clinsafe.rag.windows import tokens
from tests.perf.rag_metrics import cheap, items

WORDS = FakeEncoder("words")
WIDE = Settings(k=50)


def item(*passages, references=("ref",), **known):
    contexts = tuple(Context(f"c{rank}", text) for rank, text in enumerate(passages))
    return Item("q", contexts=contexts, references=tuple(references), **known)


def one(passage, *references, encoder=WORDS, settings=WIDE):
    return relevance([item(passage, references=references)], cheap, settings, encoder)[0][0]


class Angles:
    """Texts of one plane: the angle to the first axis in degrees, by the first word that is known; else 90."""

    identity = ModelIdentity("angles")

    def __init__(self, **degrees) -> None:
        self.degrees, self.calls = degrees, 0

    def encode(self, texts, /):
        self.calls += 1
        found = [
            next((self.degrees[word] for word in tokens(text) if word in self.degrees), 90) for text in texts
        ]
        turned = np.radians(found)
        return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


# ── a battery that only a working R passes ─────────────────────────────────────────────────────

BATTERY = [
    ("Give Aspirin daily. Stop smoking.", "aspirin daily", 1),
    ("Give aspirin daily. Stop smoking.", "Aspirin daily.", 1),
    ("The heart is large.", "art", 0),
    ("Take 0.5 mg at night.", "5 mg", 0),
    ("Daily aspirin is given in a dose of 75 mg.", "aspirin 75 mg daily dose", 2),
    ("Daily aspirin is given.", "aspirin 75 mg daily dose", 0),
    ("Rash came first. Rash rash rash cough.", "rash rash rash fever", 3),
    ("", "anything at all here", 0),
]


def passes(r) -> bool:
    """Whether this R finds what is there, at the level where it is, and nothing else."""
    return all(
        r([item(passage, references=[reference])], cheap, WIDE, WORDS)[0][0].level == level
        for passage, reference, level in BATTERY
    )


def broken(change):
    return lambda *given: [tuple(change(match) for match in row) for row in relevance(*given)]


def test_only_a_working_r_passes():
    assert passes(relevance)
    always_yes = broken(lambda match: replace(match, level=1))
    always_no = broken(lambda match: replace(match, level=0))
    disabled = broken(lambda match: Match(None, why="off"))
    without_model = broken(lambda match: replace(match, level=match.level % 3))
    for wrong in (always_yes, always_no, disabled, without_model):
        assert not passes(wrong)


# ── levels ─────────────────────────────────────────────────────────────────────────────────────


def test_a_substring_names_the_sentences_that_hold_it():
    match = one("First comes this. Then give aspirin. And stop. Not more.", "Aspirin. And stop")
    assert (match.level, match.score, match.window) == (1, 1.0, "then give aspirin. and stop.")
    text = cheap("First comes this. Then give aspirin. And stop. Not more.")
    assert text[match.start : match.end] == match.window
    assert match.reference == "aspirin. and stop"


@pytest.mark.parametrize(("shared", "level"), [(4, 2), (3, 0)])
def test_token_recall_fires_at_0_80_exactly(shared, level):
    words = ["kidney", "function", "normal", "dose", "unchanged"]
    match = one(" x ".join(reversed(words[:shared])), " ".join(words))
    assert match.level == level
    if level:
        assert match.score == 0.8


def test_token_recall_counts_repeats_and_needs_four_tokens():
    assert one("pain and fever", "pain pain pain pain fever").level != 2
    assert one("mg 75 aspirin", "aspirin 75 mg", encoder=None).level is None
    assert one("mg 75 aspirin daily", "aspirin daily 75 mg").level == 2
    off = Settings(thresholds=Thresholds(overlap_tokens=5))
    assert one("mg 75 aspirin daily", "aspirin daily 75 mg", encoder=None, settings=off).level is None


def test_token_recall_names_the_sentence_that_holds_most():
    match = one("No word of it. Daily dose of aspirin: 75 mg. Aspirin again.", "aspirin 75 mg daily dose")
    assert match.window == "daily dose of aspirin: 75 mg."
    apart = one("Aspirin it is. Between. The daily dose is 75 mg. After.", "aspirin 75 mg daily dose fever")
    assert apart.level == 2
    assert apart.window == "aspirin it is. between. the daily dose is 75 mg."


@pytest.mark.parametrize(("degrees", "level"), [(41, 3), (42, 0)])
def test_cosine_fires_at_0_75(degrees, level):
    match = one("Nothing. Near one. Nothing.", "target", encoder=Angles(target=0, near=degrees))
    assert match.level == level
    assert match.score == pytest.approx(math.cos(math.radians(degrees)), abs=1e-5)
    assert match.window == ("near one." if level else "")


def test_windows_have_as_many_sentences_as_the_reference():
    seen = []

    class Listening(Angles):
        def encode(self, texts, /):
            seen.extend(texts)
            return super().encode(texts)

    one("Alpha one. Beta one. Gamma one.", "Two sentences. As said.", encoder=Listening())
    assert seen == ["two sentences. as said.", "alpha one. beta one.", "beta one. gamma one."]
    seen.clear()
    one("Alpha one.", "Longer than the passage. By far. It is.", encoder=Listening())
    assert seen == ["longer than the passage. by far. it is.", "alpha one."]


def test_of_several_references_the_strictest_level_then_the_highest_score_counts():
    passage = "Daily dose of aspirin: 75 mg. Near it."
    match = one(passage, "aspirin 75 mg daily dose", "near it")
    assert (match.level, match.reference) == (1, "near it")
    match = one(passage, "aspirin 75 mg daily dose fever", "aspirin 75 mg daily dose")
    assert (match.level, match.score, match.reference) == (2, 1.0, "aspirin 75 mg daily dose")
    angles = Angles(far=40, close=10, near=0)
    match = one("Near.", "far", "close", encoder=angles)
    assert (match.level, match.reference) == (3, "close")
    assert one("Near.", "...", "close", encoder=angles).level == 3


def test_r_is_blind_to_negation():
    assert one("The patient has no penicillin allergy.", "The patient has a penicillin allergy.").level == 2


# ── what is not measured ───────────────────────────────────────────────────────────────────────


def test_without_an_encoder_what_words_did_not_find_is_not_known():
    found = relevance(
        [item("aspirin daily", "something else", "", "?!", references=["aspirin daily"])], cheap, WIDE
    )
    assert [match.level for match in found[0]] == [1, None, 0, 0]
    assert found[0][1].why == NO_ENCODER
    assert [match.hit for match in found[0]] == [True, None, False, False]


@pytest.mark.parametrize("references", [(), ("",), (" ", "...", "-- ?")])
def test_a_reference_without_a_word_is_none(references):
    found = relevance([item("text", "", references=references)], cheap, WIDE, WORDS)[0]
    assert [(match.level, match.why) for match in found] == [(None, NO_REFERENCE)] * 2


def test_no_passages_no_matches_and_all_is_cut_at_k():
    questions = [Item("q", references=("a",)), item(), item("a", "a", "a", references=["a"])]
    assert [len(row) for row in relevance(questions, cheap, Settings(k=2), WORDS)] == [0, 0, 2]


def test_an_encoder_that_gives_nan_is_told_and_not_counted():
    class Broken(Angles):
        def encode(self, texts, /):
            return np.full((len(texts), 2), np.nan)

    with pytest.raises(ModelError, match="NaN"):
        one("some text", "other words", encoder=Broken())


# ── batches ────────────────────────────────────────────────────────────────────────────────────


def test_all_texts_of_a_batch_are_encoded_in_one_call():
    angles = Angles()
    relevance([item("a b", "c d", references=["x", "y"]), item("e", references=["z"])], cheap, WIDE, angles)
    assert angles.calls == 1


def test_level_score_and_window_do_not_hang_on_the_batch():
    questions = list(items(12, 4))
    whole = relevance(questions, cheap, WIDE, WORDS)
    assert {match.level for row in whole for match in row} >= {0, 1, 2}
    single = [relevance([question], cheap, WIDE, WORDS)[0] for question in questions]
    assert whole == single


@settings(max_examples=25)
@given(st.permutations(range(5)))
def test_another_order_of_passages_is_another_order_of_matches(order):
    passages = ["aspirin daily", "75 mg of daily aspirin dose", "nothing", "", "aspirin x. aspirin daily."]
    references = ["aspirin daily", "aspirin 75 mg dose daily"]
    straight = relevance([item(*passages, references=references)], cheap, WIDE, WORDS)[0]
    turned = relevance([item(*[passages[i] for i in order], references=references)], cheap, WIDE, WORDS)[0]
    assert list(turned) == [straight[i] for i in order]


text = st.lists(
    st.sampled_from(["aspirin", "75", "0.75", "mg", "no", "a.", "b)", "é", "e\u0301", "-", "\n", "!"]),
    max_size=14,
)


@settings(max_examples=60)
@given(text, text)
def test_a_substring_has_all_its_tokens_in_its_window(passage, reference):
    match = one(" ".join(passage), " ".join(reference), encoder=None)
    if match.level in (1, 2):
        have = tokens(match.window)
        wanted = tokens(match.reference)
        held = sum(min(have.count(token), wanted.count(token)) for token in set(wanted))
        assert held / len(wanted) >= (1.0 if match.level == 1 else 0.8)
        assert match.window == cheap(" ".join(passage))[match.start : match.end]
    if tokens(" ".join(reference)):
        assert (one(" ".join([*passage, ".", *reference]), " ".join(reference), encoder=None).level) in (
            1,
            2,
            None,
        )


# ── hostile texts ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("passage", "reference", "level"),
    [
        ("1" * 64 + " units", "1" * 64, 1),
        ("1" * 64 + " units", "1" * 63, 0),
        ("1." * 40, "1.1", 0),
        ("cafe\u0301 noir", "cafe", 0),
        ("\u0301", "a", 0),
        ("a \x00 b", "a \x00 b", 1),
        ("\ud800 aspirin", "aspirin", 1),
        ("٣ mg", "٣ mg", 1),
        ("أسبرين يوميا", "أسبرين", 1),
        ("a b", "a b c d e f g h i j", 0),
    ],
)
def test_odd_texts(passage, reference, level):
    assert one(passage, reference).level == level


def test_a_megabyte_takes_no_time():
    words = "no word of this sentence is the one at all. " * 23_000
    begun = time.process_time()
    assert one(words, "aspirin daily dose of 75 mg", encoder=None).level is None
    assert one(words + "Give aspirin.", "give aspirin", encoder=None).window == "give aspirin."
    assert one(words[:200_000], "this sentence word one zebra", encoder=None).level == 2
    assert one("a" * 1_000_000, "a", encoder=None).level is None
    assert one("short", words, encoder=None).level is None
    assert time.process_time() - begun < 5


@pytest.mark.slow
def test_a_real_model_finds_a_paraphrase_and_no_other_text_alone_or_in_a_batch(minilm):
    reference = "High blood pressure raises the risk of stroke."
    paraphrase = "Aspirin was given. Hypertension increases the likelihood of a stroke. She went home."
    other = "The leaves of the plant are green. Cells die in a pattern."
    both = relevance([item(paraphrase, other, references=[reference])], cheap, WIDE, minilm)[0]
    assert [match.level for match in both] == [3, 0]
    assert both[0].window == "hypertension increases the likelihood of a stroke."
    alone = one(paraphrase, reference, encoder=minilm)
    assert (alone.level, alone.window, alone.score) == (
        3,
        both[0].window,
        pytest.approx(both[0].score, abs=2e-5),
    )


def test_without_the_level_of_meaning_r_is_words_alone_and_nothing_is_left_unknown():
    items_ = [
        item("The dose is 5 mg daily.", "Nothing of the kind was said.", references=["dose is 5 mg daily"])
    ]
    words = Settings(levels=("substring", "tokens"))
    assert [match.hit for match in relevance(items_, cheap, words)[0]] == [True, False]
    assert [match.hit for match in relevance(items_, cheap, Settings())[0]] == [True, None]
