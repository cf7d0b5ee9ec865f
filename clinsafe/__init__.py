"""clinsafe: is an embedding model or a RAG system safe to put in front of a clinician?

Importing this package imports nothing heavy; each function loads what it needs when it is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clinsafe.protocols import Encoder
    from clinsafe.workflows.audit import AuditResult

__all__ = ["audit"]


def audit(model: str | Path | Encoder, *, out: str | Path | None = None, **options: Any) -> AuditResult:
    """Audit an embedding model and write evidence and report into a run folder.

    Args:
        model: alias (``minilm``), folder, hub id, ``plugin:name``, or an object with ``encode`` and ``identity``.
        out: run folder; None makes ``runs/<model>-<time>``.
        **options: see `clinsafe.workflows.audit.run_audit`.

    Returns:
        The result; ``result.released`` and ``result.held`` are the verdict, ``result.report`` the document.

    Raises:
        clinsafe.errors.ClinsafeError: one line on what is wrong and what would be valid.
    """
    from clinsafe.workflows.audit import run_audit

    return run_audit(model, out=Path(out) if out is not None else None, **options)
