"""What blind readers said of the labelled answers, how far they agree, and which labels may be used.

A reader sees question, contexts and answer, never the writer's label, note or hazard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated

from pydantic import Field

from clinsafe.content import Content, Record
from clinsafe.errors import ContentError
from clinsafe.rag.auditing.answers import FOLDER, AnswerRow, Label, Name, lines_of
from clinsafe.rag.auditing.kappa import kappa
from clinsafe.stats import Figure

READERS = f"{FOLDER}/answers_readers.jsonl"
WRITER = "writer"
PROVISIONAL = "provisional: fewer than two readers have labelled the answers; the labels are the writer's own"


class ReaderRow(Record):
    """One reader's word on one answer.

    Attributes:
        adherence: how far the answer keeps to the contexts, in [0, 1], where the reader said so.
    """

    id: Name
    reader: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[\w.\-]+$")]
    label: Label
    adherence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that instruments are held against.

    Attributes:
        of: answer id -> label: the one that all its readers gave; the writer's where the set is provisional.
        provisional: no answer has been read by two readers.
        readers: their names, in order of first appearance.
        disagreed: ids on which readers differ; they are left out.
        unread: ids with fewer than two readers; left out too, unless the set is provisional.
        overruled: ids that the readers agree on against the writer; used with the readers' label.
        agreement: pair of names -> kappa, ``writer`` among them.
    """

    of: Mapping[str, Label]
    provisional: bool
    readers: tuple[str, ...] = ()
    disagreed: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    overruled: tuple[str, ...] = ()
    agreement: Mapping[tuple[str, str], Figure] = field(default_factory=dict)


def load_readers(content: Content, rows: Sequence[AnswerRow]) -> list[ReaderRow]:
    """All that readers said; nothing where there is no file.

    Raises:
        ContentError: a malformed row, an id that is no answer's, a reader who labels an answer twice, or one that calls
            itself the writer.
    """
    folder, _, name = READERS.rpartition("/")
    if name.removesuffix(".jsonl") not in content.names(folder, ".jsonl"):
        return []
    found, path = content.jsonl(READERS, ReaderRow), content.path(READERS)
    known, seen = {row.id for row in rows}, dict[tuple[str, str], int]()
    for number, one in zip(lines_of(path), found, strict=True):
        if one.reader == WRITER:
            raise ContentError(path, number, "reader", "the writer is no blind reader; name the reader")
        if one.id not in known:
            raise ContentError(path, number, "id", f"{one.id!r} is not the id of a labelled answer")
        if (first := seen.setdefault((one.reader, one.id), number)) != number:
            raise ContentError(
                path, number, "id", f"{one.reader} has labelled {one.id!r} in line {first} already"
            )
    return found


def settle(rows: Sequence[AnswerRow], said: Sequence[ReaderRow]) -> Labels:
    """Which labels may be used, and how far those who gave them agree."""
    readers = tuple(dict.fromkeys(one.reader for one in said))
    of: dict[str, dict[str, Label]] = {reader: {} for reader in readers}
    for one in said:
        of[one.reader][one.id] = one.label
    of_writer: dict[str, Label] = {row.id: row.kind for row in rows}
    agreement = _agreement(rows, {WRITER: of_writer, **of})
    given = {row.id: [of[r][row.id] for r in readers if row.id in of[r]] for row in rows}
    unread = tuple(one for one, labels in given.items() if len(labels) < 2)
    if len(unread) == len(rows):
        return Labels(of_writer, True, readers, unread=unread, agreement=agreement)
    agreed = {one: labels[0] for one, labels in given.items() if len(labels) > 1 and len(set(labels)) == 1}
    return Labels(
        of=agreed,
        provisional=False,
        readers=readers,
        disagreed=tuple(one for one, labels in given.items() if len(labels) > 1 and one not in agreed),
        unread=unread,
        overruled=tuple(one for one, label in agreed.items() if label != of_writer[one]),
        agreement=agreement,
    )


def _agreement(
    rows: Sequence[AnswerRow], labels: Mapping[str, Mapping[str, Label]]
) -> dict[tuple[str, str], Figure]:
    """Kappa of every two, over the answers that both have labelled; resampled by source."""
    found = {}
    for a, b in combinations(labels, 2):
        both = [row for row in rows if row.id in labels[a] and row.id in labels[b]]
        found[a, b] = kappa(
            [labels[a][row.id] for row in both],
            [labels[b][row.id] for row in both],
            [(row.source.corpus, row.source.id) for row in both],
        )
    return found
