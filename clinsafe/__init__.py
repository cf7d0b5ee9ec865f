"""clinsafe: is an embedding model or a RAG system safe to put in front of a clinician?

Importing this package imports nothing heavy; each function loads what it needs when it is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clinsafe.workflows.audit import AuditResult, Subjects

__all__ = ["audit"]


def audit(models: Subjects, *, out: str | Path | None = None, **options: Any) -> AuditResult:
    """Audit one or several models and write evidence and report into a run folder.

    Args:
        models: alias (``minilm``), folder, ONNX file, hub id, ``endpoint:name``, ``plugin:name``, an object with
            ``identity`` and ``encode`` or ``score``, or a list of these.
        out: run folder; None makes ``runs/<model>-<time>``.
        **options: fields of `clinsafe.adapters.encoders.ModelOptions` (``revision``, ``prompts``, ``base_url`` …) and
            arguments of `clinsafe.workflows.audit.run_audit` (``protocol``, ``hazards``, ``key`` …).

    Returns:
        The result; ``result.released`` and ``result.held`` are the verdict, ``result.report`` the document.

    Raises:
        clinsafe.errors.ClinsafeError: one line on what is wrong and what would be valid.
    """
    from dataclasses import fields
    from inspect import signature

    from clinsafe.adapters.encoders import ModelOptions
    from clinsafe.errors import UsageError
    from clinsafe.workflows.audit import run_audit

    names = {field.name for field in fields(ModelOptions)}
    valid = sorted(names | set(signature(run_audit).parameters) - {"models", "options"})
    if unknown := [name for name in options if name not in valid]:
        raise UsageError(f"audit() has no argument {unknown[0]!r}; there are: {', '.join(valid)}")
    chosen = ModelOptions(**{name: value for name, value in options.items() if name in names})
    rest = {name: value for name, value in options.items() if name not in names or name == "offline"}
    return run_audit(models, options=chosen, out=Path(out) if out is not None else None, **rest)
