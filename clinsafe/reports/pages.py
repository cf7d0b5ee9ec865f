"""Are the pages what the record renders to? Byte by byte with the same renderer, cell by cell without it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from clinsafe.content import Content, sha256_file
from clinsafe.errors import ClinsafeError
from clinsafe.reports import pdf
from clinsafe.reports.evidence import Evidence
from clinsafe.reports.render import FONTS, TEMPLATES, html
from clinsafe.reports.words import missing_words

Rerender: TypeAlias = Literal["IDENTICAL", "DIFFERENT", "NOT_COMPARABLE"]


def compare_pages(evidence: Evidence, record: bytes, first_revision: bytes) -> tuple[Rerender, str]:
    """(answer, reason); `first_revision` are the bytes of the report as they were before signing."""
    content = Content()
    other = [n for n in (*TEMPLATES, *FONTS) if evidence.content.get(n) != sha256_file(content.path(n))]
    if other:
        return "NOT_COMPARABLE", f"the report was made with another {', '.join(other)}"
    here = pdf.renderer_versions()
    changed = [n for n, v in here.items() if evidence.environment.get(n) != v]
    if changed:
        return _compare_words(evidence, content, first_revision, ", ".join(changed))
    try:
        pages = pdf.render(html(evidence, content), record, evidence.created, content)
    except ClinsafeError as error:
        return "NOT_COMPARABLE", str(error)
    except Exception as error:  # a record edited by hand may lack what the template needs
        return "DIFFERENT", f"the record cannot be rendered ({type(error).__name__})"
    if pages == first_revision:
        return "IDENTICAL", "the pages are byte for byte what the evidence renders to"
    return "DIFFERENT", "the pages differ from what the evidence renders to"


def _compare_words(
    evidence: Evidence, content: Content, document: bytes, changed: str
) -> tuple[Rerender, str]:
    """Without the same renderer the pages cannot be compared byte by byte, but what they say can be."""
    try:
        missing = missing_words(html(evidence, content, charts=False), document)
    except Exception as error:
        return "DIFFERENT", f"the record or the pages cannot be read ({type(error).__name__})"
    if missing:
        return "DIFFERENT", f"the pages do not say what the evidence says, for example {missing[0][:60]!r}"
    return (
        "NOT_COMPARABLE",
        f"another version of {changed} is installed here; every printed cell was found in the pages, in order",
    )
