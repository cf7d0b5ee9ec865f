"""From the record of a RAG evaluation to its HTML; the PDF is made from the very same HTML."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from clinsafe.checklist.hazards import load_hazards
from clinsafe.content import Content, sha256_file
from clinsafe.errors import RenderError
from clinsafe.rag.insights import FILE as RULES
from clinsafe.rag.insights import load_rules
from clinsafe.reports.rag_formats import kept
from clinsafe.reports.rag_record import RagEvidence
from clinsafe.reports.rag_standing import HAZARDS
from clinsafe.reports.rag_view import build
from clinsafe.reports.render import FONTS

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = "reports/templates/rag"
PARTS = ("report", "macros", "front", "system", "judge", "compared", "closing")
STYLES = ("reports/templates/report.css", f"{FOLDER}/rag.css")
TEMPLATES = tuple(f"{FOLDER}/{part}.html.j2" for part in PARTS)
DRAWN_WITH = (*TEMPLATES, *STYLES, *FONTS, RULES, HAZARDS)
"""Every content file that shapes the pages; their hashes stand in the record."""


ALLOWED = "\n\u00a0"


def content_hashes(content: Content) -> dict[str, str]:
    """File -> SHA-256 of all that shapes the pages."""
    return {name: sha256_file(content.path(name)) for name in DRAWN_WITH}


def html(record: RagEvidence, content: Content, *, charts: bool = True) -> str:
    """The report as one self-contained HTML document.

    Args:
        record: the evidence.
        content: where templates, fonts and rules lie.
        charts: False leaves the pictures out, for comparing words where nothing can draw.

    Raises:
        RenderError: a template is at fault.
        ContentError: the rules of the table of insights are.
    """
    from jinja2 import TemplateError, TemplateSyntaxError

    texts = {name.rpartition("/")[2]: content.path(name).read_text(encoding="utf-8") for name in TEMPLATES}
    css = "\n".join(content.path(name).read_text(encoding="utf-8") for name in STYLES)
    hazards: Mapping[str, str] = {one.id: one.name for one in load_hazards(content)}
    view = build(record, load_rules(content), hazards, draw=charts)
    try:
        template = _environment(tuple(texts.items())).get_template("report.html.j2")
        return str(template.render(v=view, e=record, css=css))
    except TemplateError as error:  # an institution's own template
        place = f"{error.name}, line {error.lineno}: " if isinstance(error, TemplateSyntaxError) else ""
        raise RenderError(
            f"a template of the report fails: {place}{error.message}; compare your own with the packaged ones "
            f"in {FOLDER}"
        ) from error


def _printable(value: object) -> object:
    """Names come from files of strangers: nothing in them may drive what shows the page."""
    if type(value) is not str:  # markup is the template's own
        return value
    return "".join(letter if letter.isprintable() or letter in ALLOWED else "?" for letter in value)


@lru_cache(maxsize=4)
def _environment(texts: tuple[tuple[str, str], ...]) -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader(dict(texts)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters["kept"] = kept
    return environment
