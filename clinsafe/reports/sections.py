"""The sections of the report as they are printed: those that clauses refer to, and the annexes."""

from __future__ import annotations

from collections.abc import Mapping

from clinsafe.checklist.regulatory import SECTIONS

ANNEXES: Mapping[str, str] = {
    "A": "Figures by subtype and stratum",
    "B": "Beside the published figures",
    "C": "Regulatory references and clauses",
    "D": "Software of unknown provenance, in full",
}
TITLES: Mapping[str, str] = {**{str(section): title for section, title in SECTIONS.items()}, **ANNEXES}
ORDER = (*list(SECTIONS)[:16], *ANNEXES, "R16", "R17")
"""The annexes stand before the closing pages, and the signatures on the last one."""
