"""``clinsafe audit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import progress, stoppable

if TYPE_CHECKING:
    from clinsafe.adapters.encoders import ModelOptions
    from clinsafe.reports.declaration import DeclaredClass
    from clinsafe.workflows.audit import AuditResult
    from clinsafe.workflows.settings import Plan


def audit(
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="Alias (minilm), folder, ONNX file, hub id, endpoint:NAME or plugin:NAME; may be repeated.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="clinsafe.yaml; without --model, the one in this folder.")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="checklist (default), paper, skill, or a protocol file (.yaml).")
    ] = None,
    suite: Annotated[
        Path | None,
        typer.Option(help="A mined suite (JSON Lines, its card beside it) instead of the written one."),
    ] = None,
    hazard: Annotated[list[str] | None, typer.Option(help="Only this hazard; may be repeated.")] = None,
    guard: Annotated[
        bool,
        typer.Option(
            "--guard", help="Measure the guard beside the models: detection, false alarms, what remains."
        ),
    ] = False,
    guard_policy: Annotated[
        str | None,
        typer.Option(help="Policy of the guard (default), a name or a YAML file; measures it too."),
    ] = None,
    answers: Annotated[
        Path | None, typer.Option(help="Answers to items 8 to 10, from `clinsafe checklist init`.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; default: runs/<model>-<time>.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in --out.")] = False,
    key: Annotated[
        Path | None, typer.Option(help="PKCS#12 or PEM signing key; default: your development key.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM certificate of a PEM key, with its issuers'.")
    ] = None,
    timestamp_url: Annotated[
        str | None, typer.Option(help="RFC 3161 timestamp authority; asked over the network.")
    ] = None,
    no_sign: Annotated[bool, typer.Option("--no-sign", help="Leave the report unsigned.")] = False,
    passphrase_file: Annotated[
        Path | None,
        typer.Option(help="File with the key's passphrase (or CLINSAFE_PASSPHRASE, or a prompt)."),
    ] = None,
    operator: Annotated[str | None, typer.Option(help="Who runs the audit; printed in the report.")] = None,
    declared_use: Annotated[str | None, typer.Option(help="Intended use, as declared.")] = None,
    declared_class: Annotated[
        list[str] | None,
        typer.Option(help="SCHEME=VALUE, as declared (`clinsafe checklist classes`); may be repeated."),
    ] = None,
    previous: Annotated[
        Path | None, typer.Option(help="Earlier run or report: what changed since stands in the report.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Hub revision of the model.")] = None,
    device: Annotated[str | None, typer.Option(help="Torch device; default: the library's choice.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, max=4096, help="Texts per forward pass.")] = 32,
    backend: Annotated[
        str, typer.Option(help="torch, or onnx: the same model in fp32 on onnxruntime.")
    ] = "torch",
    prompts: Annotated[
        str, typer.Option(help="auto (the model's own), none, nomic, e5, bge, gte or qwen.")
    ] = "auto",
    query_prompt: Annotated[str | None, typer.Option(help="Text put before every query.")] = None,
    passage_prompt: Annotated[str | None, typer.Option(help="Text put before every passage.")] = None,
    pooling: Annotated[
        str | None, typer.Option(help="cls, mean or last: for an ONNX folder that does not say.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option(help="Of endpoint:NAME; its key comes from CLINSAFE_API_KEY.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds an endpoint may take for one request.")
    ] = 60.0,
    content: Annotated[Path | None, typer.Option(help="Overlay of controlled content.")] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Refuse every connection off this machine.")
    ] = False,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Allow the model's own code and pickles; printed.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the flat metric mapping here.")
    ] = None,
) -> None:
    """Audit embedding models and cross-encoders: six hazards, exact intervals, FMEA, checklist, signed PDF.

    Exit code 0: every hazard of every model passed. 1: at least one is held. 2: usage or input error.
    """
    with stoppable():
        from clinsafe.adapters.encoders import ModelOptions
        from clinsafe.cli.files import refuse_unwritable
        from clinsafe.cli.sign import key_or_none
        from clinsafe.cli.verdict import show, write_figures
        from clinsafe.reports.declaration import Declaration
        from clinsafe.reports.timestamps import authority
        from clinsafe.workflows.audit import Subject, run_audit

        refuse_unwritable(json_file)
        plan = _plan(config, model or [])
        options = ModelOptions(
            revision=revision,
            device=device,
            batch_size=batch_size,
            backend=backend,
            prompts=prompts,
            query_prompt=query_prompt,
            passage_prompt=passage_prompt,
            pooling=pooling,
            base_url=base_url,
            timeout=timeout,
            offline=offline,
            trust_remote_code=trust_remote_code,
        )
        named = model or ([entry.model for entry in plan.settings.models] if plan else [])
        _refuse_without_endpoint(options, named)
        classes = [_declared(text) for text in declared_class or []] or None
        said = {"operator": operator, "intended_use": declared_use, "classes": classes}
        declaration = (plan.declaration if plan else Declaration()).model_copy(
            update={name: value for name, value in said.items() if value is not None}
        )
        signing = None if no_sign else key_or_none(key, passphrase_file, certificate)
        timestamper = authority(timestamp_url, offline=offline) if timestamp_url and signing else None
        with progress() as stage:
            result = run_audit(
                plan.subjects(options, model or [])
                if plan
                else [Subject(m, options.meant_for(m)) for m in model or []],
                protocol=protocol or (plan.protocol if plan else None),
                gates=plan.settings.gates if plan else (),
                suite=suite,
                hazards=hazard,
                guard=guard_policy or (plan.guard if plan else "") or guard,
                answers=answers or (plan.answers if plan else None),
                previous=previous,
                declaration=declaration,
                settings=plan.file if plan else None,
                out=out,
                force=force,
                overlay=content or (plan.overlay if plan else None),
                key=signing,
                timestamper=timestamper,
                offline=offline,
                stage=stage,
            )
    _say_tier(result)
    show(result)
    if json_file:
        write_figures(result, json_file)
    raise typer.Exit(0 if result.released else 1)


def _say_tier(result: AuditResult) -> None:
    """Which cases these figures are about, and how far they reach; a mined suite's sources with their licences."""
    from clinsafe.cli.console import counted, printable, prose
    from clinsafe.cli.console import out as stdout

    record = result.evidence.suite
    cases = counted(sum(record.counts.values()), "case")
    console = stdout()
    prose(console, printable(f"tier {record.tier}: {record.title}, version {record.version}, {cases}"))
    if record.mined is not None:
        sources = "; ".join(f"{one.source} ({one.licence})" for one in record.mined.sources)
        prose(console, printable(f"mined from: {sources}"))
    prose(console, "bounds hold for this tier's sampling frame, not your hospital", style="dim")


def _refuse_without_endpoint(options: ModelOptions, models: list[str]) -> None:
    """What is said of an endpoint, and no endpoint among the models, would be read by nothing."""
    from clinsafe.adapters.encoders import is_endpoint
    from clinsafe.errors import UsageError

    if any(map(is_endpoint, models)):
        return
    if options.base_url is not None:
        raise UsageError("--base-url is the address of an endpoint: give --model endpoint:NAME too")
    if options.timeout != type(options)().timeout:
        raise UsageError("--timeout is how long an endpoint is waited for: give --model endpoint:NAME too")


def _plan(config: Path | None, models: list[str]) -> Plan | None:
    """The settings file, if one is named or lies here and no model was given."""
    from clinsafe.errors import UsageError
    from clinsafe.workflows.settings import FILE_NAME, load_settings

    if config is not None:
        return load_settings(config)
    if models:
        return None
    if not Path(FILE_NAME).is_file():
        raise UsageError(
            f"which model? Give --model (minilm, a folder, a hub id), or write {FILE_NAME} with `clinsafe init`"
        )
    return load_settings(Path(FILE_NAME))


def _declared(text: str) -> DeclaredClass:
    """``mdr-class=IIa``; without a scheme it is free text."""
    from clinsafe.errors import UsageError
    from clinsafe.reports.declaration import OTHER_SCHEME, DeclaredClass

    scheme, found, value = (part.strip() for part in text.partition("="))
    if not found:
        scheme, value = OTHER_SCHEME, scheme
    if not (scheme and value):
        raise UsageError(f"--declared-class {text!r}: give SCHEME=VALUE, for example mdr-class=IIa")
    return DeclaredClass(scheme=scheme, value=value)
