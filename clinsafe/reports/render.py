"""From an evidence record to the report's HTML; the PDF is made from the very same HTML.

Everything that is printed comes from the evidence. Words and layout lie in ``reports/``, formats in
`clinsafe.reports.formats`, what a page sees in `clinsafe.reports.view`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from clinsafe.content import Content
from clinsafe.errors import RenderError
from clinsafe.reports import formats
from clinsafe.reports.evidence import Evidence
from clinsafe.reports.view import build

if TYPE_CHECKING:
    from jinja2 import Environment

PARTS = ("report", "macros", "front", "control", "use", "system", "criteria", "figures", "anomalies", "risk",
         "checklist", "change", "after", "trace", "annex", "published", "regulatory", "soup", "integrity",
         "signatures")  # fmt: skip
TEMPLATES = (*(f"reports/templates/{part}.html.j2" for part in PARTS), "reports/templates/report.css")
FONTS = ("reports/fonts/DejaVuSans.ttf", "reports/fonts/DejaVuSans-Bold.ttf")
STRATA = (("all cases", None), ("balanced", "stratum=balanced"), ("b closer", "stratum=b_closer"))


def html(evidence: Evidence, content: Content, *, charts: bool = True) -> str:
    """The report as one self-contained HTML document.

    Args:
        charts: False leaves the pictures out, for comparing words where nothing can draw.
        evidence: the record.
        content: where templates and fonts lie; the templates' hashes stand in ``evidence.content``.

    Raises:
        RenderError: a template is at fault.
    """
    from jinja2 import TemplateError, TemplateSyntaxError

    # Part by part through `content`, so that an overlay may replace one template and leave the others.
    texts = {name.rpartition("/")[2]: content.path(name).read_text(encoding="utf-8") for name in TEMPLATES}
    environment = _environment(tuple(texts.items()))
    view, css = build(evidence, charts=charts), texts[TEMPLATES[-1].rpartition("/")[2]]
    try:
        template = environment.get_template(TEMPLATES[0].rpartition("/")[2])
        return str(template.render(v=view, e=evidence, css=css, strata=STRATA))
    except TemplateError as error:  # an institution's own template
        place = f"{error.name}, line {error.lineno}: " if isinstance(error, TemplateSyntaxError) else ""
        raise RenderError(
            f"a template of the report fails: {place}{error.message}; compare your own with the packaged ones in "
            "reports/templates"
        ) from error


@lru_cache(maxsize=8)
def _environment(texts: tuple[tuple[str, str], ...]) -> Environment:
    """Templates by name; it compiles each of them once, so it is kept for the next report with the same ones."""
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        loader=DictLoader(dict(texts)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(formats.FILTERS)
    return environment
