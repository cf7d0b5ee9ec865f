"""Checking: one table of attacks, judged by our checker and by broken ones.

The table is data (`tests.reports.attacks`): a name, the document, whom the reader trusts, when, and the facts that
must be False. `score_checker` runs any checker over it, so the table itself is tested: a checker that always says
yes, one that always says no, and pyHanko's own verdict must each fail it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime
from io import BytesIO

import pytest

from clinsafe.errors import KeyFileError, ReportError
from clinsafe.reports.pdfcheck import REQUIRED, PdfCheck, attachment, check_pdf
from tests.reports.attacks import (
    ATTACKS,
    READABLE,
    UNREADABLE,
    Attack,
    flipped,
    overlay,
    replace_evidence,
    retitle,
)
from tests.reports.signing import FORGED, NOW, World, update

pytest.importorskip("weasyprint")


@pytest.fixture(scope="module")
def world() -> World:
    return World()


Checker = Callable[[bytes, Sequence[bytes], datetime], bool]


def ours(document: bytes, trust: Sequence[bytes], now: datetime) -> bool:
    """Our verdict; "no PDF at all" is a no."""
    try:
        return check_pdf(document, trust, now=now).valid
    except ReportError:
        return False


def pyhankos(document: bytes, trust: Sequence[bytes], now: datetime) -> bool:
    """The library's own verdict, as a first implementation would use it."""
    from pyhanko.keys import load_certs_from_pemder_data
    from pyhanko.pdf_utils.reader import PdfFileReader
    from pyhanko.sign.validation import validate_pdf_signature
    from pyhanko_certvalidator import ValidationContext

    try:
        roots = [root for der in trust for root in load_certs_from_pemder_data(der)]
        context = ValidationContext(trust_roots=roots, allow_fetching=False, moment=now)
        signature = PdfFileReader(BytesIO(document)).embedded_signatures[0]
        return bool(validate_pdf_signature(signature, context).bottom_line)
    except Exception:
        return False


def score_checker(checker: Checker, world: World) -> list[str]:
    """The names of the rows that a checker judges wrongly."""
    return [
        attack.name
        for attack in ATTACKS
        if checker(attack.build(world), [key.certificate for key in attack.trust(world)], attack.now)
        is not attack.valid
    ]


# ── the table ──────────────────────────────────────────────────────────────────────────────────


def test_our_checker_judges_every_row_rightly(world: World) -> None:
    assert score_checker(ours, world) == []


def test_broken_checkers_fail_the_table(world: World) -> None:
    """Always yes fails every attack, always no every honest file, the library's verdict the quiet attacks."""
    attacked = {attack.name for attack in ATTACKS if not attack.valid}
    honest = {attack.name for attack in ATTACKS if attack.valid}
    assert set(score_checker(lambda *_: True, world)) == attacked
    assert len(attacked) > 80
    assert set(score_checker(lambda *_: False, world)) == honest
    assert len(honest) == 4
    missed = set(score_checker(pyhankos, world))
    assert {"title changed", "bytes appended", "expired, trusted itself", "no contentCommitment"} <= missed


@pytest.mark.parametrize("attack", READABLE, ids=lambda row: row.name)
def test_the_facts_name_the_attack(world: World, attack: Attack) -> None:
    """Exactly the facts of the row are False, and each has its line; nothing else is blamed."""
    found = check_pdf(attack.build(world), [key.certificate for key in attack.trust(world)], now=attack.now)
    assert frozenset(fact for fact in REQUIRED if not getattr(found, fact)) == attack.false
    assert len(found.problems) == len(attack.false or ()) + bool(attack.problem)
    assert attack.problem in " ".join(found.problems)
    assert found.signed
    assert found.valid is attack.valid


def test_the_attacks_are_real(world: World) -> None:
    """A reader would see the forgery: other evidence, another title, a white page."""
    import pypdfium2

    assert attachment(update(world.signed, replace_evidence)) == FORGED
    with pypdfium2.PdfDocument(update(world.signed, retitle)) as pdf:
        assert pdf.get_metadata_value("Title") == "Another report"
    pages = []
    for document in (world.signed, update(world.signed, overlay)):
        with pypdfium2.PdfDocument(document) as pdf:
            pages.append(pdf[0].render().to_numpy().min())
    assert pages[0] < 100
    assert pages[1] == 255


@pytest.mark.parametrize("attack", UNREADABLE, ids=lambda row: row.name)
def test_no_traceback_ever(world: World, attack: Attack) -> None:
    """A file past reading has problems of one plain line; only what is no PDF at all raises."""
    document = attack.build(world)
    if b"%PDF-" not in document[:1024]:
        with pytest.raises(ReportError, match="not a PDF"):
            check_pdf(document, [])
        return
    found = check_pdf(document, [world.key.certificate])
    assert not found.valid
    assert found.problems
    assert attack.problem in " ".join(found.problems)
    for line in found.problems:
        assert "\n" not in line
        assert line.endswith(".")
        assert "Traceback" not in line


def test_an_empty_result_is_not_valid() -> None:
    """Facts default to False, and no problem alone does not make a signature."""
    assert not PdfCheck().valid
    everything = {f.name: True for f in fields(PdfCheck) if f.type == "bool"}
    assert PdfCheck(**everything).valid  # type: ignore[arg-type]
    for fact in ("signed", *REQUIRED):
        assert not PdfCheck(**everything | {fact: False}).valid  # type: ignore[arg-type]


def test_the_librarys_no_is_final(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pyHanko objects to something that the policy has no fact for, the answer is no, too."""
    from pyhanko.sign.validation.status import PdfSignatureStatus

    monkeypatch.setattr(PdfSignatureStatus, "bottom_line", False)
    found = check_pdf(world.signed, [world.key.certificate])
    assert not found.valid
    assert [line for line in found.problems if "was rejected" in line] == list(found.problems)


def test_a_trusted_certificate_that_is_none(world: World) -> None:
    """It is not the report's fault."""
    for junk in (b"", b"junk", world.key.certificate[:-5], b"0\x03\x02\x01\x01"):
        with pytest.raises(KeyFileError, match="trusted certificate"):
            check_pdf(world.signed, [world.key.certificate, junk])


@pytest.mark.slow
def test_no_bit_of_650_in_the_signed_ranges_changes_unseen(world: World) -> None:
    trust = [world.key.certificate]
    assert ours(world.signed, trust, NOW)
    assert [seed for seed in range(1000, 1650) if ours(flipped(seed)(world), trust, NOW)] == []
