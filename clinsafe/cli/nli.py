"""``clinsafe guard calibrate-nli``: the threshold of one NLI model, from the suite's dev split."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable, progress, prose, stoppable

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.workflows.nli_calibration import CalibrationResult


def calibrate(
    model: Annotated[
        str, typer.Option("--model", "-m", help="NLI model: alias, folder with safetensors, or hub id.")
    ],
    out: Annotated[Path, typer.Option(help="The calibration file to write.")] = Path("nli-calibration.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file in --out.")] = False,
    limit: Annotated[
        float | None,
        typer.Option(
            help="False alarms allowed: one-sided 95 % bound, by case; default: mitigations/nli.yaml."
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            help="Meaning of the model's outputs, three times in their order, where its configuration is silent.",
        ),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Hub revision of the model.")] = None,
    device: Annotated[str | None, typer.Option(help="Torch device; default: the library's choice.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, max=4096, help="Pairs per forward pass.")] = 32,
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Refuse every connection off this machine.")
    ] = False,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Allow the model's own code and pickles; recorded.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the flat metric mapping here.")
    ] = None,
) -> None:
    """Choose the smallest threshold that keeps false alarms within a limit on the dev split, and write it to a file.

    Exit code 0: written. 1: no threshold keeps the limit, nothing is written to --out. 2: usage or input error.
    """
    with stoppable():
        import json

        from clinsafe.adapters.nli import load_nli
        from clinsafe.adapters.offline import only_this_machine
        from clinsafe.cli.files import refuse_unwritable, write_whole
        from clinsafe.content import Content
        from clinsafe.errors import OutputExists
        from clinsafe.stats import figure_to_json
        from clinsafe.workflows import nli_calibration as work

        for path in (out, json_file):
            refuse_unwritable(path)
        if out.exists() and not force:
            raise OutputExists(
                f"{out}: is there already; name another file with --out, or replace it with --force"
            )
        with only_this_machine(offline), progress() as stage:
            loaded = load_nli(
                model,
                labels=label,
                revision=revision,
                device=device,
                batch_size=batch_size,
                offline=offline,
                trust_remote_code=trust_remote_code,
            )
            result = work.calibrate(loaded, content=Content(content), limit=limit, stage=stage)
    files: dict[Path, str | bytes] = {}
    if result.calibration is not None:
        files[out] = result.calibration.to_yaml()
    if json_file is not None:
        flat = {key: figure_to_json(figure) for key, figure in result.figures.items()}
        files[json_file] = json.dumps(flat, indent=1)
    write_whole(files)
    _show(stdout(), result, out)
    raise typer.Exit(0 if result.calibration is not None else 1)


def _show(console: Console, result: CalibrationResult, out: Path) -> None:
    from clinsafe.protocols import MetricKey
    from clinsafe.reports.formats import proportion

    found = result.threshold
    prose(console, printable(f"{result.model}: {result.n} dev cases, 95 % Clopper-Pearson, no temperature"))
    for name, figure in result.figures.items():
        key = MetricKey.parse(name)
        label = f"{key.hazard} {key.metric}{f', {key.subtype}' if key.subtype else ''}".replace("_", " ")
        console.print(f"{label:<32}{proportion(figure)}", markup=False, soft_wrap=True)
    if found.value is None:
        line = f"no threshold: {found.reason}; nothing was written"
        console.print(printable(line), style="bold red", markup=False, soft_wrap=True)
        return
    prose(console, "The threshold was chosen on these cases, so the figures flatter the model.", style="dim")
    line = f"threshold {found.value:g}, written to {out}"
    console.print(printable(line), style="bold green", markup=False, soft_wrap=True)
