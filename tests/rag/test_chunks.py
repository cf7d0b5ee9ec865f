"""Chunks: nothing is lost, neighbours share what they should, offsets hold; the store gives back what was written."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.corpus import Document
from clinsafe.errors import UsageError
from clinsafe.rag.chunks import WIDEST, ChunkStore, HubTokenizer, WordPieces, chunks, write_chunks

texts = st.text(alphabet="ab9 .\n\t-é𝄞\u2003", min_size=1, max_size=120)
sizes = st.integers(1, 9).flatmap(lambda t: st.tuples(st.just(t), st.integers(0, t - 1)))


def bert(words=("[UNK]", "fe", "##ver", "aspirin", "5", "mg", ".", "is", "given")):
    """A real tokenizer of the library, as cut off and padded as a model's own file may make it."""
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    made = tokenizers.Tokenizer(WordPiece({w: n for n, w in enumerate(words)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = BertNormalizer(), BertPreTokenizer()
    made.enable_truncation(4)
    made.enable_padding(length=16)
    return made


def check(text, size, tokenizer):
    tokens, overlap = size
    found = list(chunks(Document("d", text, "d"), tokens, overlap, tokenizer))
    assert found == list(chunks(Document("d", text, "d"), tokens, overlap, tokenizer))
    assert all(text[c.start : c.end] == c.text and c.text for c in found)
    assert found[0].start == 0
    assert found[-1].end == len(text)
    assert all(b.start <= a.end for a, b in pairwise(found))
    assert all(c.tokens <= tokens for c in found)
    assert all(c.tokens == tokens for c in found[:-1])
    assert [a.first + a.tokens - b.first for a, b in pairwise(found)] == [overlap] * (len(found) - 1)
    assert [c.id for c in found] == [f"d#{n}" for n in range(len(found))]


@given(texts, sizes)
def test_chunks_lose_nothing_and_share_exactly_the_overlap(text, size):
    check(text, size, None)


def test_the_same_with_a_tokenizer_of_the_library_which_would_cut_off():
    text = "Aspirin  5 mg is given.\nFever feverfever \u00e9 is given. " * 9
    tokenizer = HubTokenizer(bert())
    assert len(tokenizer.offsets(text)) > 100
    for size in ((1, 0), (7, 3), (20, 19), (1000, 100)):
        check(text, size, tokenizer)


def test_the_identity_names_the_tokenizer_and_changes_with_it():
    one, other = HubTokenizer(bert()), HubTokenizer(bert(["[UNK]", "fever"]))
    assert one.identity == HubTokenizer(bert()).identity
    assert len({one.identity, other.identity, WordPieces.identity}) == 3


class Given:
    identity = "given"

    def __init__(self, offsets):
        self._offsets = offsets

    def offsets(self, text, /):
        return self._offsets


@given(st.lists(st.integers(0, 20), max_size=30), sizes)
def test_offsets_that_repeat_or_step_back_lose_nothing(starts, size):
    """Byte tokenizers give several tokens one character, some step back."""
    text = "abcdefghijklmnopqrst"
    found = list(chunks(Document("d", text, "d"), *size, Given([(s, s + 1) for s in starts])))
    assert {n for c in found for n in range(c.start, c.end)} == set(range(len(text)))
    assert all(c.tokens <= size[0] and text[c.start : c.end] == c.text for c in found)


def test_offsets_outside_the_text_are_refused():
    with pytest.raises(UsageError, match="offsets outside the text"):
        list(chunks(Document("d", "abc", "d"), 5, 0, Given([(0, 1), (9, 10)])))


@pytest.mark.parametrize("text", ["x" * 50_000, " " * 50_000 + "x", "x" + "\n" * 50_000])
def test_a_word_or_a_gap_without_end_still_makes_bounded_chunks(text):
    found = list(chunks(Document("d", text, "d"), 10, 2))
    assert max(len(c.text) for c in found) <= 10 * WIDEST
    assert "".join(c.text for c in list(chunks(Document("d", text, "d"), 10, 0))) == text
    assert (
        max(len(c.text) for c in chunks(Document("d", text, "d"), 10, 2, Given([(0, 50_000)]))) <= 10 * WIDEST
    )


def test_the_paper_s_chunks_are_the_default():
    found = list(chunks(Document("d", "word " * 2500, "d")))
    assert [c.tokens for c in found] == [1024, 1024, 652]
    assert [c.first for c in found] == [0, 924, 1848]


@pytest.mark.parametrize("size", [(0, 0), (5, 5), (5, -1)])
def test_chunks_that_would_never_end_are_refused(size):
    with pytest.raises(UsageError, match="overlap less than tokens"):
        list(chunks(Document("d", "a b", "d"), *size))


def test_no_text_no_chunk():
    assert list(chunks(Document("d", "", "d"))) == []


def test_a_megabyte_takes_time_in_proportion():
    text = "The patient was given 5 mg of aspirin, and the fever fell. " * 17_500
    begun = time.perf_counter()
    found = list(chunks(Document("d", text, "d")))
    assert time.perf_counter() - begun < 3  # half a second; quadratic would be minutes
    assert len(text) > 1_000_000
    assert sum(c.tokens for c in found) > 200_000


# ── on disk ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def store(tmp_path):
    documents = [Document(f"d{n}", f"text {n} " * 30, "c", {"date": f"20{n:02}"}) for n in (2, 0, 1)]
    assert write_chunks(tmp_path / "c.sqlite", (chunks(d, 20, 5) for d in documents)) == 12
    with ChunkStore(tmp_path / "c.sqlite") as opened:
        yield opened, [c for d in documents for c in chunks(d, 20, 5)]


def test_what_was_written_comes_back_in_the_order_asked_for(store):
    opened, written = store
    assert len(opened) == 12
    assert opened.get([7, 0, 11, 7]) == [written[n] for n in (7, 0, 11, 7)]
    assert opened.ids([3, 2]) == [written[3].id, written[2].id]
    assert opened.rows([written[3].id, written[0].id]) == [3, 0]
    assert list(opened.texts(2, 5)) == [c.text for c in written[2:5]]
    by_id = sorted(range(12), key=lambda n: written[n].id)
    assert np.argsort(opened.order()).tolist() == by_id


def test_rows_and_ids_that_are_not_there_are_key_errors(store):
    opened, _ = store
    for ask in (lambda: opened.get([99]), lambda: opened.ids([99]), lambda: opened.rows(["d9#0"])):
        with pytest.raises(KeyError):
            ask()


@pytest.mark.parametrize("data", [b"", b"no database at all" * 100])
def test_a_file_of_another_kind_is_one_line(tmp_path, data):
    (tmp_path / "c.sqlite").write_bytes(data)
    with pytest.raises(UsageError, match="no store of chunks"):
        ChunkStore(tmp_path / "c.sqlite")
