"""``clinsafe rag …``: run a reference pipeline, evaluate traces, audit judges, reproduce the paper."""

from __future__ import annotations

import typer

from clinsafe.cli import rag_audit, rag_evaluate, rag_reproduce, rag_run

app = typer.Typer(
    help="Diagnose a RAG system from its traces: retrieval, generation, whether success was grounded, and safe.",
    no_args_is_help=True,
)
app.command("evaluate")(rag_evaluate.evaluate)
app.command("run")(rag_run.run)
app.command("audit-judge")(rag_audit.judges)
app.command("reproduce")(rag_reproduce.reproduce)
