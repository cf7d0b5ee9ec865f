"""Qualify the tool itself, as a story: make every check, write down what was seen, sign it.

An installation and operational qualification in one record. A check that breaks has failed, and one that could not
be made was not run; neither is ever a pass.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from clinsafe.checklist.qualification import FILE, CheckSpec
from clinsafe.content import packaged_root, sha256_file
from clinsafe.errors import MissingDependency, OutputExists, RenderError, UsageError
from clinsafe.reports import pdf
from clinsafe.reports import qualification as records
from clinsafe.reports.evidence import sha256
from clinsafe.reports.qualification import CheckRecord, Qualification
from clinsafe.version import VERSION
from clinsafe.workflows import qualify_figures as figures
from clinsafe.workflows import qualify_installation as installed
from clinsafe.workflows import qualify_record as written
from clinsafe.workflows.prepare import environment
from clinsafe.workflows.qualify_bench import Bench, Found, not_run
from clinsafe.workflows.runs import PARTIAL, STATE, RunFolder, open_run
from clinsafe.workflows.write import Stage, silent

if TYPE_CHECKING:
    from clinsafe.reports.sign import SigningKey

Instrument: TypeAlias = Callable[[Bench], Found]
INSTRUMENTS: Mapping[str, Instrument] = {
    "IQ-01": installed.platform_check,
    "IQ-02": installed.required_packages,
    "IQ-03": installed.tested_versions,
    "IQ-04": installed.package_unmodified,
    "IQ-05": installed.controlled_content,
    "IQ-06": installed.renderer_and_fonts,
    "IQ-07": installed.offline_switch,
    "OQ-01": figures.exact_intervals,
    "OQ-02": figures.paired_comparisons,
    "OQ-03": figures.hand_computed,
    "OQ-04": figures.gates_at_edges,
    "OQ-05": figures.blind_model,
    "OQ-06": figures.knowing_model,
    "OQ-07": figures.fake_is_held,
    "OQ-08": figures.lexical_baselines,
    "OQ-09": figures.not_measured,
    "OQ-10": written.same_record_twice,
    "OQ-11": written.same_pages_twice,
    "OQ-12": written.genuine_report,
    "OQ-13": written.flipped_bit,
    "OQ-14": written.appended_byte,
    "OQ-15": written.forged_figure,
    "OQ-16": written.changed_page,
    "OQ-17": figures.reference_counts,
    "OQ-18": figures.reference_cosines,
}
"""Check id -> what makes it; the ids are those of ``checklist/qualification.yaml``."""
LONGEST = 240
"""Characters of one observation or reason that are kept."""


@dataclass(frozen=True)
class QualifyResult:
    """A finished qualification and where its files are; `pdf` is None where `notes` say why there is none."""

    record: Qualification
    record_sha256: str
    folder: Path
    json: Path
    pdf: Path | None
    signed: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def qualified(self) -> bool:
        """The verdict."""
        return self.record.qualified


def run_qualify(
    *,
    out: Path | None = None,
    key: SigningKey | None = None,
    with_model: bool = True,
    operator: str = "not stated",
    stage: Stage = silent,
) -> QualifyResult:
    """Qualify this installation.

    Args:
        out: a new or empty folder; None makes ``runs/qualification-<time>``.
        key: from `clinsafe.reports.keys.load_key`; None leaves the record unsigned.
        with_model: False leaves out the reference model, whose checks then stand as not run.
        operator: who does it, as printed.
        stage: progress callback, called before every check.

    Raises:
        ClinsafeError: the folder is taken or cannot be written, or the checks themselves cannot be read. A check
            that fails is a result, never an error.
    """
    try:
        operator.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"operator must be text in UTF-8, got {operator!r:.60}") from error
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputExists(
            f"{out} exists; choose another --out, or leave it out for a new folder under runs/"
        )
    run = open_run(
        out, model="qualification", fingerprint=uuid.uuid4().hex, force=False, now=datetime.now(UTC)
    )
    try:
        with tempfile.TemporaryDirectory(prefix="clinsafe-qualify-") as scratch:
            bench = Bench(Path(scratch), with_model)
            checks = make_checks(bench, stage)
            stage("Writing the record", 0, 0)
            record = _record(bench, checks, operator)
            return _write(record, bench, key, run)
    except BaseException:
        run.close()
        _leave_nothing(run.path)
        raise
    finally:
        run.close()


def _leave_nothing(folder: Path) -> None:
    """A qualification that was stopped is begun anew: its empty folder must not stand in the way."""
    shutil.rmtree(folder / PARTIAL, ignore_errors=True)
    with suppress(OSError):
        (folder / STATE).unlink(missing_ok=True)
        folder.rmdir()  # not where a record was written


def make_checks(bench: Bench, stage: Stage = silent, only: str = "") -> list[CheckRecord]:
    """Every check whose id begins with `only`, in their order."""
    asked = [spec for spec in bench.asked.checks if spec.id.startswith(only)]
    made = []
    for number, spec in enumerate(asked):
        stage(f"{spec.id} {spec.title}", number, len(asked))
        made.append(_make(spec, bench))
    return made


def _make(spec: CheckSpec, bench: Bench) -> CheckRecord:
    instrument = INSTRUMENTS.get(spec.id)
    if instrument is None:
        found = not_run("this version has no instrument for it")
    else:
        try:
            found = instrument(bench)
        except MissingDependency as error:
            found = not_run(str(error))
        except Exception as error:  # noqa: BLE001 - an instrument that breaks, however it does, has failed
            words = " ".join(str(error).split()) or "no message"
            found = Found("it broke", "fail", f"{type(error).__name__}: {words}")
    return CheckRecord(
        **spec.model_dump(),
        observed=_plain(found.observed, bench),
        outcome=found.outcome,
        reason=_plain(found.reason, bench),
    )


def _plain(text: str, bench: Bench) -> str:
    """Printable, of bounded length, and without the paths of this machine."""
    for place, name in ((bench.scratch, "scratch"), (packaged_root(), "content"), (Path.home(), "home")):
        text = text.replace(str(place), f"({name})")
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _record(bench: Bench, checks: list[CheckRecord], operator: str) -> Qualification:
    record = Qualification(
        tool={"name": "clinsafe", "version": VERSION},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        operator=operator,
        installation=installed.installation(),
        environment=environment(),
        distributions=installed.all_distributions(),
        content=installed.content_hashes(),
        package_sha256=installed.package_sha256(),
        requirements_sha256=sha256_file(bench.content.path(FILE)),
        checks=checks,
        verdict=records.verdict_of(checks),
        deviations=records.deviations_of(checks),
        yours=bench.asked.yours,
    )
    return records.from_bytes(records.to_bytes(record))  # as every reader will see it


def _write(record: Qualification, bench: Bench, key: SigningKey | None, run: RunFolder) -> QualifyResult:
    """The record first, so that whatever fails afterwards, it is kept."""
    data, notes = records.to_bytes(record), []
    json_path = run.write(records.JSON_NAME, data)
    document: bytes | None = None
    try:
        page = records.html(record, bench.content)
        document = pdf.render(page, data, record.created, bench.content)
    except (MissingDependency, RenderError) as error:
        notes.append(str(error))
    if key is not None:
        from clinsafe.reports.dsse import attest
        from clinsafe.reports.sign import sign_pdf

        said = records.predicate(record)
        envelope = attest({records.JSON_NAME: data}, key, predicate_type=records.PREDICATE, predicate=said)
        run.write(records.SIDECAR, json.dumps(envelope, indent=1))
        document = None if document is None else sign_pdf(document, key, meaning="author")
    pdf_path = run.write(records.PDF_NAME, document) if document is not None else None
    run.finish()
    return QualifyResult(
        record, sha256(data), run.path, json_path, pdf_path, key.name if key else None, notes
    )
