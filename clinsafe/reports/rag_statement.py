"""What the DSSE sidecar of a RAG evaluation says about the record; other in-toto tools read only the sidecar.

Nothing passes or fails in an evaluation, so it is not in-toto's test result.
"""

from __future__ import annotations

from typing import Any

from clinsafe.reports.rag_record import RagEvidence

PREDICATE = "urn:clinsafe:predicate:rag-evaluation:v1"


def predicate(record: RagEvidence) -> dict[str, Any]:
    """The statement, all of it derived from the record."""
    effective = [system.figures.get("cue.all.effective_use", {}) for system in record.systems]
    return {
        "settings": {"sha256": record.settings_sha256},
        "questions": record.questions,
        "systems": [system.label for system in record.systems],
        "traces": [
            {"name": system.source.file, "digest": {"sha256": system.source.sha256}}
            for system in record.systems
        ],
        "judge": record.judge.identity.name if record.judge else "none",
        "cueMeasured": all("value" in figure for figure in effective),
        "fake": record.fake,
    }
