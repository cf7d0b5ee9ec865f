"""``clinsafe report approve``: sign a report in a role; show who has signed and who is missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable

if TYPE_CHECKING:
    from clinsafe.reports.approvals import Approvals


def approve(
    file: Annotated[Path, typer.Argument(help="The signed report.pdf.")],
    role: Annotated[str, typer.Option(help="In which role you sign, for example 'clinical safety officer'.")],
    name: Annotated[str, typer.Option(help="Your printed name.")],
    meaning: Annotated[
        str, typer.Option(help="What you state: author, review, approval or responsibility.")
    ] = "approval",
    comment: Annotated[str, typer.Option(help="A remark that you sign with it.")] = "",
    key: Annotated[
        Path | None, typer.Option(help="PKCS#12 or PEM key; default: your development key.")
    ] = None,
    passphrase_file: Annotated[
        Path | None,
        typer.Option(help="File with passphrase or PIN (or CLINSAFE_PASSPHRASE, or a prompt)."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM certificate of a PEM key or a token's, with its issuers'.")
    ] = None,
    pkcs11_module: Annotated[Path | None, typer.Option(help="PKCS#11 library of a token.")] = None,
    pkcs11_token: Annotated[str | None, typer.Option(help="The token's label.")] = None,
    pkcs11_key: Annotated[str | None, typer.Option(help="Label of the key on the token.")] = None,
    trust: Annotated[
        list[Path] | None,
        typer.Option(help="Certificate of the report's signer or of an approver; may be repeated."),
    ] = None,
) -> None:
    """Approve a signed report: your signature over the whole file, kept beside it.

    Without --trust, reports signed with your own development key are trusted, and your own key always. The report
    itself is not judged here: run `clinsafe report verify` first.

    Exit code 0: your approval was added. 2: it was not; the line says why.
    """
    from clinsafe.cli.sign import open_key
    from clinsafe.errors import ReportError, UsageError
    from clinsafe.reports.approvals import check_approvals
    from clinsafe.reports.countersign import add_approval
    from clinsafe.reports.evidence import from_bytes, sha256
    from clinsafe.reports.pdfcheck import attachment
    from clinsafe.reports.sign import REASONS
    from clinsafe.reports.verify import trusted_certificates

    chosen = next((known for known in REASONS if known == meaning), None)
    if chosen is None:
        raise UsageError(
            f"--meaning {meaning!r} is not a meaning of a signature; valid: {', '.join(REASONS)}"
        )
    try:
        record = attachment(file.read_bytes())
    except OSError as error:
        raise ReportError(f"{file}: cannot be read: {error.strerror or error}") from error
    evidence, certificates = from_bytes(record), trusted_certificates(trust or ())
    console = stdout()
    said = "released by protocol" if evidence.released else "HELD"
    console.print(f"{file.name}: audit verdict {said}", markup=False, emoji=False, soft_wrap=True)
    console.print(f"evidence SHA-256 {sha256(record)}", markup=False, emoji=False, soft_wrap=True)
    signing = open_key(key, certificate, passphrase_file, pkcs11_module, pkcs11_token, pkcs11_key)
    known = [*certificates, signing.certificate]
    path = add_approval(file, signing, name=name, role=role, meaning=chosen, trust=known, comment=comment)
    for line in summary(check_approvals(file, known), evidence.declaration.required_roles):
        console.print(printable(line), markup=False, emoji=False)
    console.print(f"approvals at {printable(str(path))}", markup=False, emoji=False, soft_wrap=True)


def summary(approvals: Approvals, required: Sequence[str]) -> list[str]:
    """Who has signed, what speaks against it, what a reader should know, who is missing; one line each.

    Texts come from a file that a stranger may have written: make them printable before they are printed.
    """
    lines = []
    for entry in approvals.entries:
        word = "signed" if entry.valid else "NOT COUNTED"
        remark = f': "{entry.comment}"' if entry.comment else ""
        lines.append(
            f"{word}: {entry.role}: {entry.name}, {entry.meaning}, {entry.time:%Y-%m-%d %H:%M} UTC, "
            f"certificate of {entry.signer or 'nobody'}{remark}"
        )
    if not approvals.entries:
        lines.append("signed: nobody yet")
    lines += [f"problem: {line}" for line in approvals.all_problems]
    lines += [f"note: {line}" for line in approvals.notes]
    missing = approvals.missing(required)
    if missing:
        lines.append(f"missing: {', '.join(missing)}")
    else:
        lines.append("missing: nobody" if required else "the report names no roles that must sign")
    return lines
