"""Are the pages what the record renders to? Byte by byte with the same renderer, cell by cell without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from clinsafe.content import Content, sha256_file
from clinsafe.errors import ClinsafeError, MissingDependency
from clinsafe.reports import pdf
from clinsafe.reports.evidence import Evidence
from clinsafe.reports.render import FONTS, TEMPLATES, html
from clinsafe.reports.words import missing_words

Rerender: TypeAlias = Literal["IDENTICAL", "DIFFERENT", "NOT_COMPARABLE"]


@dataclass(frozen=True)
class Pages:
    """What is known of the pages.

    Attributes:
        answer: IDENTICAL, DIFFERENT, or NOT_COMPARABLE where the renderer that made them is not here.
        reason: one line.
        read: every printed cell of the record was found in the pages, in order. False where not even that could be
            looked at: such pages may say anything.
    """

    answer: Rerender
    reason: str
    read: bool


def compare_pages(evidence: Evidence, record: bytes, first_revision: bytes) -> Pages:
    """`first_revision` are the bytes of the report as they were before signing."""
    content = Content()
    other = [n for n in (*TEMPLATES, *FONTS) if evidence.content.get(n) != sha256_file(content.path(n))]
    if other:
        version = evidence.tool.get("version", "another version")[:40]
        named = ", ".join(name.rpartition("/")[2] for name in other[:2]) + (" …" if len(other) > 2 else "")
        return Pages(
            "NOT_COMPARABLE",
            f"the report was made with another {named}: check it with clinsafe {version}, which has those files",
            read=False,
        )
    here = pdf.renderer_versions()
    changed = [n for n, v in here.items() if evidence.environment.get(n) != v]
    if changed:
        return _compare_words(evidence, content, first_revision, ", ".join(changed))
    try:
        pages = pdf.render(html(evidence, content), record, evidence.created, content)
    except ClinsafeError as error:
        return Pages("NOT_COMPARABLE", str(error), read=False)
    except Exception as error:  # a record edited by hand may lack what the template needs
        return Pages("DIFFERENT", f"the record cannot be rendered ({type(error).__name__})", read=False)
    if pages == first_revision:
        return Pages("IDENTICAL", "the pages are byte for byte what the evidence renders to", read=True)
    return Pages("DIFFERENT", "the pages differ from what the evidence renders to", read=False)


def _compare_words(evidence: Evidence, content: Content, document: bytes, changed: str) -> Pages:
    """Without the same renderer the pages cannot be compared byte by byte, but what they say can be."""
    try:
        missing = missing_words(html(evidence, content, charts=False), document)
    except MissingDependency as error:
        return Pages("NOT_COMPARABLE", str(error), read=False)
    except Exception as error:
        reason = f"the record or the pages cannot be read ({type(error).__name__})"
        return Pages("DIFFERENT", reason, read=False)
    if missing:
        said = f"the pages do not say what the evidence says, for example {missing[0][:60]!r}"
        return Pages("DIFFERENT", said, read=False)
    return Pages(
        "NOT_COMPARABLE",
        f"another version of {changed} is installed here; every printed cell was found in the pages, in order",
        read=True,
    )
