"""``clinsafe report sign``, and the opening of whatever key a command was given."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import printable

if TYPE_CHECKING:
    from cryptography import x509

    from clinsafe.reports.sign import SigningKey


class Means(StrEnum):
    """What a signature says, as `clinsafe.reports.sign.Meaning`."""

    AUTHOR = "author"
    REVIEW = "review"
    APPROVAL = "approval"
    RESPONSIBILITY = "responsibility"


def sign(
    file: Annotated[Path, typer.Argument(help="An unsigned report.pdf.")],
    out: Annotated[Path, typer.Option(help="The signed PDF to write.")],
    meaning: Annotated[Means, typer.Option(help="What your signature says.")],
    name: Annotated[str | None, typer.Option(help="Your name, printed; default: the certificate's.")] = None,
    location: Annotated[str, typer.Option(help="Where you sign; printed.")] = "",
    key: Annotated[
        Path | None, typer.Option(help="PKCS#12 or PEM key; default: your development key.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="PEM certificate of a PEM key or a token's, with its issuers'.")
    ] = None,
    passphrase_file: Annotated[
        Path | None,
        typer.Option(help="File with passphrase or PIN (or CLINSAFE_PASSPHRASE, or a prompt)."),
    ] = None,
    pkcs11_module: Annotated[Path | None, typer.Option(help="PKCS#11 library of a token.")] = None,
    pkcs11_token: Annotated[str | None, typer.Option(help="The token's label.")] = None,
    pkcs11_key: Annotated[str | None, typer.Option(help="Label of the key on the token.")] = None,
    timestamp_url: Annotated[
        str | None, typer.Option(help="RFC 3161 timestamp authority; asked over the network.")
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Refuse every connection off this machine.")
    ] = False,
    no_stamp: Annotated[
        bool, typer.Option("--no-stamp", help="Do not print the signature on the last page.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Sign a report: who, when and what for, printed on its last page; nothing may change afterwards.

    If a timestamp authority fails, nothing is written and the unsigned report stays as it is (exit code 2).
    """
    from clinsafe.adapters.offline import only_this_machine
    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.errors import OutputExists, ReportError
    from clinsafe.reports.pdfcheck import attachment
    from clinsafe.reports.sign import sign_pdf
    from clinsafe.reports.stamp import Stamp, can_stamp
    from clinsafe.reports.timestamps import authority

    if out.exists() and not force:
        raise OutputExists(f"{out} exists; choose another --out, or replace it with --force")
    refuse_unwritable(out)
    try:
        document = file.read_bytes()
    except OSError as error:
        raise ReportError(f"{file}: cannot be read: {error.strerror or error}") from error
    attachment(document)  # what has no evidence inside is no report
    timestamper = authority(timestamp_url, offline=offline) if timestamp_url else None
    opened = open_key(key, certificate, passphrase_file, pkcs11_module, pkcs11_token, pkcs11_key)
    stamp = Stamp() if can_stamp() and not no_stamp else None
    with only_this_machine(offline):
        signed = sign_pdf(
            document,
            opened,
            meaning=meaning.value,
            printed_name=name,
            stamp=stamp,
            timestamper=timestamper,
            location=location,
        )
    write_whole({out: signed})
    typer.echo(printable(f"signed by {opened.name} ({meaning.value}): {out}"))
    if opened.development:
        typer.echo("note: a DEVELOPMENT key proves nothing about who signed")
    if stamp is None and not no_stamp:
        typer.echo(
            "note: the signature is invisible; to print it on the page: pip install 'clinsafe[report]'"
        )


def open_key(
    path: Path | None = None,
    certificate: Path | None = None,
    passphrase_file: Path | None = None,
    pkcs11_module: Path | None = None,
    pkcs11_token: str | None = None,
    pkcs11_key: str | None = None,
) -> SigningKey:
    """The key that the options name; without any, the user's development key.

    Args:
        path: PKCS#12, or PEM with `certificate` (or the certificate in the same file).
        certificate: PEM, the signer's and any issuers'; for a PEM key or for a token that holds none.
        passphrase_file: passphrase of the key file, or PIN; else CLINSAFE_PASSPHRASE, else a prompt.
        pkcs11_module: library of a token, with `pkcs11_token` and `pkcs11_key`.
        pkcs11_token: label of the token.
        pkcs11_key: label of the key on it.

    Raises:
        UsageError: options that make no sense together.
        KeyFileError: no such key, or one that cannot sign.
        MissingDependency: a token without the extra ``pkcs11``.
    """
    from clinsafe.cli.report import ask_passphrase
    from clinsafe.errors import KeyFileError, UsageError
    from clinsafe.reports import pemkeys
    from clinsafe.reports.keys import default_folder, find_passphrase, find_pin, load_key

    token = {"module": pkcs11_module, "token": pkcs11_token, "key": pkcs11_key}
    if any(token.values()):
        if pkcs11_module is None or not pkcs11_token or not pkcs11_key:
            missing = ", ".join(f"--pkcs11-{name}" for name, value in token.items() if not value)
            raise UsageError(
                f"a key on a token needs --pkcs11-module, --pkcs11-token, --pkcs11-key; add {missing}"
            )
        if path is not None:
            raise UsageError("--key names a file and --pkcs11-module a token; give one of them")
        from clinsafe.reports.token import open_token

        pin = find_pin(pkcs11_token, file=passphrase_file, environ=os.environ, prompt=ask_passphrase())
        given = _certificates(certificate) if certificate else []
        return open_token(pkcs11_module, pkcs11_token, pkcs11_key, pin, certificates=given)
    chosen = path or default_folder() / "development.p12"
    if path is None and certificate is not None:
        raise UsageError("--certificate belongs to a PEM key or to a token: give --key KEY.pem, too")
    if not chosen.is_file():  # before anyone is asked for its passphrase
        raise KeyFileError(
            f"{chosen}: no such key file; name one with --key, or make a development key with `clinsafe report key`"
        )
    if certificate is None and not pemkeys.is_pem(chosen):
        passphrase = find_passphrase(
            chosen, file=passphrase_file, environ=os.environ, prompt=ask_passphrase()
        )
        return load_key(chosen, passphrase)
    if not pemkeys.is_pem(chosen) and chosen.is_file():
        raise UsageError(
            f"{chosen}: not PEM; a PKCS#12 file holds its own certificate, so leave --certificate out"
        )
    secret = None
    if pemkeys.is_encrypted(chosen):
        secret = find_passphrase(chosen, file=passphrase_file, environ=os.environ, prompt=ask_passphrase())
    return pemkeys.load_pem(chosen, certificate, secret)


def _certificates(path: Path) -> list[x509.Certificate]:
    from cryptography import x509

    from clinsafe.errors import KeyFileError

    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except OSError as error:
        raise KeyFileError(f"{path}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise KeyFileError(f"{path}: holds no certificate in PEM; name the file that does") from None


def key_or_none(
    path: Path | None, passphrase_file: Path | None, certificate: Path | None = None
) -> SigningKey | None:
    """The key, opened before anything is computed; None where none is named and there is no development key."""
    from clinsafe.reports.keys import default_folder

    if path is None and not (default_folder() / "development.p12").is_file():
        return None
    return open_key(path, certificate, passphrase_file)
