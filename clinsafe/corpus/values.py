"""The values of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from clinsafe.errors import ContentError, UsageError


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a corpus.

    Attributes:
        id: unique in the corpus; ``file:line`` where the record names none.
        text: never empty.
        cluster: the source that it belongs to; its own id unless `Layout.cluster` names a field.
        fields: the other columns that hold one short value, as text.
    """

    id: str
    text: str
    cluster: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the records of a corpus are laid out.

    Attributes:
        id: field with the id; text or a whole number.
        text: fields with the text, joined with blank lines; a list of texts is joined likewise.
        cluster: field with the source document; "" means that each record is one of its own.
    """

    id: str = "id"
    text: tuple[str, ...] = ("text",)
    cluster: str = ""

    @classmethod
    def parse(cls, given: str) -> Layout:
        """``id=pmid,text=question+contexts,cluster=source``; what is not named stays as usual.

        Raises:
            UsageError: another form, a name that is none of the three, or one that is given twice.
        """
        found: dict[str, str] = {}
        for part in given.split(","):
            name, equals, value = (piece.strip() for piece in part.partition("="))
            if not (equals and value) or name not in ("id", "text", "cluster") or name in found:
                raise UsageError(
                    f"layout {given!r}: the form is id=FIELD,text=FIELD+FIELD,cluster=FIELD, each once"
                )
            found[name] = value
        text = tuple(piece.strip() for piece in found.pop("text", "text").split("+"))
        if not all(text):
            raise UsageError(f"layout {given!r}: a text field between two + has no name")
        return cls(text=text, **found)


@dataclass(frozen=True, slots=True)
class BadRecord:
    """What is no document, and why.

    Attributes:
        path: the file.
        line: line of a JSON Lines file or row of a Parquet file, from 1; None means the whole file.
        field: the field at fault, or None.
        message: what is wrong; never the text.
    """

    path: Path
    line: int | None
    field: str | None
    message: str

    def error(self) -> ContentError:
        """As the error that is raised where nobody asked to be told."""
        return ContentError(self.path, self.line, self.field, self.message)

    def __str__(self) -> str:
        return str(self.error())


OnBad: TypeAlias = Callable[[BadRecord], None]
