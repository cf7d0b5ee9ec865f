"""Operational qualification of the record: is it reproducible, and is every way of tampering with it found?"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clinsafe.errors import ReportError
from clinsafe.reports import dsse, evidence, pdfcheck, sign, verify
from clinsafe.reports.evidence import Evidence
from clinsafe.reports.formats import proportion
from clinsafe.stats import figure_from_json, figure_to_json, rate_of
from clinsafe.workflows.qualify_bench import SMALL, Bench, Found, judged

TRIED = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
"""Places of flipped bits, as shares of the report before it was signed; for the signature check alone."""
COMMENT = 10
"""A byte of the comment in the file's second line: nothing that is drawn or attached depends on it, so that only the
signature can tell. This one goes through the whole verification."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+\d\d:\d\d|Z)")
KEY = f"suite.{SMALL}.inversion"


def same_record_twice(bench: Bench) -> Found:
    """OQ-10."""
    first, second = bench.small.evidence, bench.small_again().evidence
    a, b = (evidence.canonical(_timeless(x.model_dump(mode="json"))) for x in (first, second))
    faults = [] if a == b else ["two records of one model differ in more than their times"]
    whole = evidence.to_bytes(first)
    if evidence.to_bytes(evidence.from_bytes(whole)) != whole:
        faults.append("the record is not in canonical form after reading it")
    hashes = f"SHA-256 {evidence.sha256(a)[:12]}… and {evidence.sha256(b)[:12]}…"
    return judged(f"{hashes} with times left out, {len(whole):,} bytes", faults)


def same_pages_twice(bench: Bench) -> Found:
    """OQ-11."""
    first, second = bench.document, bench.render(bench.small.evidence)
    places = [i for i, (x, y) in enumerate(zip(first, second, strict=False)) if x != y]
    faults = []
    if first != second:
        where = f"from byte {places[0]:,} on" if places else "in length"
        faults.append(f"two renderings of one record differ {where}")
    return judged(
        f"{len(first):,} and {len(second):,} bytes, {'equal' if first == second else 'different'}", faults
    )


def genuine_report(bench: Bench) -> Found:
    """OQ-12."""
    seen = verify.verify(_signed(bench), [bench.owner[1]])
    faults = [] if seen.valid else [f"a genuine report is called {seen.verdict}"]
    if seen.rerender != "IDENTICAL":
        faults.append(f"pages {seen.rerender}: {seen.rerender_reason}")
    return judged(
        f"{'VALID' if seen.valid else 'INVALID'}, pages {seen.rerender}, {seen.figures} figures derived",
        faults,
    )


def flipped_bit(bench: Bench) -> Found:
    """OQ-13."""
    signed, pem = _signed(bench).read_bytes(), bench.owner[1]
    certificates = verify.trusted_certificates([pem])
    places = [int(share * len(bench.document)) for share in TRIED]
    unseen = [
        place
        for number, place in enumerate(places)
        if pdfcheck.check_pdf(_flipped(signed, place, number), certificates).valid
    ]
    if _accepted(bench, "flipped.pdf", _flipped(signed, COMMENT, 0), [pem]):
        unseen.append(COMMENT)
    tried = len(places) + 1
    faults = [f"a bit of byte {place:,} was changed, and the report is called valid" for place in unseen]
    return judged(f"{tried - len(faults)} of {tried} changes found", faults)


def appended_byte(bench: Bench) -> Found:
    """OQ-14."""
    signed = _signed(bench).read_bytes()
    accepted = _accepted(bench, "appended.pdf", signed + b"\n", [bench.owner[1]])
    return judged("VALID" if accepted else "INVALID", ["a byte was added, unnoticed"] if accepted else [])


def forged_figure(bench: Bench) -> Found:
    """OQ-15. The forger signs everything anew, so that only the key and the sums betray it."""
    forged = _forge(bench.small.evidence)
    (key, forgers), (_, owners) = bench.stranger, bench.owner
    faults = []
    resigned = sign.sign_pdf(bench.document, key, meaning="author")
    if pdfcheck.check_pdf(resigned, verify.trusted_certificates([owners])).valid:
        faults.append("a report under an unknown key is called valid")
    unknown, known = (verify.verify(_with_sidecar(bench, forged), [trust]) for trust in (owners, forgers))
    if unknown.valid or unknown.signature.trusted:
        faults.append("a forged record under an unknown key is called valid or trusted")
    if known.valid or not known.faults:
        faults.append("the edited figure is not noticed where the forger's key is trusted")
    return judged(f"{3 - len(faults)} of 3 forgeries found", faults)


def changed_page(bench: Bench) -> Found:
    """OQ-16. The record is genuine and the key trusted; only the page says something else."""
    figures = bench.small.evidence.systems[0].figures
    said = proportion(figure_from_json(figures[KEY]))
    other = proportion(rate_of(0, int(figures[KEY]["n"])))
    changes = 0

    def tamper(page: str) -> str:
        nonlocal changes
        changes = page.count(said)
        return page.replace(said, other)

    document = bench.render(bench.small.evidence, tamper)
    if not changes:
        return Found("nothing", "fail", f"the figure {said} is not on the page, so it could not be changed")
    path = _write(bench, "changed.pdf", sign.sign_pdf(document, bench.owner[0], meaning="author"))
    seen = verify.verify(path, [bench.owner[1]])
    faults = ["a page that contradicts its record is called valid"] if seen.valid else []
    if not seen.valid and seen.rerender != "DIFFERENT":
        faults.append(f"it was found invalid for another reason: {seen.verdict}")
    return judged(f"{'VALID' if seen.valid else 'INVALID'}, pages {seen.rerender}", faults)


def _forge(genuine: Evidence) -> Evidence:
    """The same record with one count set to zero, and its canonical bytes read back."""
    system = genuine.systems[0]
    better = figure_to_json(rate_of(0, int(system.figures[KEY]["n"])))
    if better == system.figures[KEY]:
        raise ReportError(f"{KEY} is zero already, so it cannot be forged")
    changed = system.model_copy(update={"figures": {**system.figures, KEY: better}})
    forged = genuine.model_copy(update={"systems": [changed, *genuine.systems[1:]]})
    return evidence.from_bytes(evidence.to_bytes(forged))


def _signed(bench: Bench) -> Path:
    """The genuine report, signed by the bench's own key; made once."""
    path = bench.scratch / "signed.pdf"
    if not path.is_file():
        path.write_bytes(sign.sign_pdf(bench.document, bench.owner[0], meaning="author"))
    return path


def _accepted(bench: Bench, name: str, document: bytes, trust: Sequence[Path]) -> bool:
    """Whether the verification calls it valid; what it cannot read at all it does not accept."""
    try:
        return verify.verify(_write(bench, name, document), trust).valid
    except ReportError:
        return False


def _with_sidecar(bench: Bench, forged: Evidence) -> Path:
    """A record beside a DSSE sidecar that the stranger made for it."""
    folder = bench.scratch / "forged"
    folder.mkdir(exist_ok=True)
    record, said = evidence.to_bytes(forged), evidence.predicate(forged)
    envelope = dsse.attest(
        {evidence.FILE_NAME: record}, bench.stranger[0], predicate_type=evidence.PREDICATE, predicate=said
    )
    (folder / verify.SIDECAR).write_text(json.dumps(envelope), encoding="utf-8")
    path = folder / evidence.FILE_NAME
    path.write_bytes(record)
    return path


def _timeless(value: Any) -> Any:
    """The same plain data with every date that has a time and a zone left out: two runs differ in nothing else."""
    if isinstance(value, dict):
        return {name: _timeless(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_timeless(part) for part in value]
    return "(time)" if isinstance(value, str) and TIME.fullmatch(value) else value


def _flipped(document: bytes, place: int, bit: int) -> bytes:
    damaged = bytearray(document)
    damaged[place] ^= 1 << bit
    return bytes(damaged)


def _write(bench: Bench, name: str, data: bytes) -> Path:
    path = bench.scratch / name
    path.write_bytes(data)
    return path
