"""Approvals: one table of attacks, judged by our checker and by broken ones; then adding, locking, OpenSSL.

The table is data (`ATTACKS`): a name, what lies on the disk, whom the reader trusts, when, and whose roles count.
`score_checker` runs any checker over it, so the table itself is tested.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import random
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.errors import KeyFileError, ReportError
from clinsafe.reports import approvals as module
from clinsafe.reports import countersign
from clinsafe.reports.approvals import (
    Approvals,
    approvals_path,
    check_approvals,
    examine,
)
from clinsafe.reports.dsse import check
from clinsafe.reports.pdfcheck import PdfCheck
from clinsafe.reports.sign import DEVELOPMENT_NAME
from tests.reports.approving import (
    ATTACKS,
    EVERYONE,
    HONEST,
    MANAGER,
    MINUTE,
    NOW,
    OFFICER,
    REVIEWER,
    Attack,
    World,
    add,
    certify,
    ders,
    quick,
    text,
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def _looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "check_pdf", quick)
    monkeypatch.setattr(countersign, "check_pdf", quick)


@pytest.fixture
def report(world: World, tmp_path: Path) -> Path:
    path = tmp_path / "report.pdf"
    path.write_bytes(world.report)
    return path


Judge = Callable[[bytes, bytes, Sequence[bytes], datetime], tuple[bool, list[str]]]


def said_in(sidecar: bytes) -> list[str]:
    """Whatever roles the lines claim."""
    roles = []
    for line in sidecar[:100_000].splitlines():
        try:
            roles.append(json.loads(base64.b64decode(json.loads(line)["payload"]))["predicate"]["role"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return roles


def signatures_only(
    sidecar: bytes, report: bytes, trust: Sequence[bytes], now: datetime
) -> tuple[bool, list[str]]:
    """A first implementation: every line is a good signature over the file; no order, no time, no spelling."""
    roots, roles = [x509.load_der_x509_certificate(der) for der in trust], []
    if len(sidecar) > 1_000_000:
        return False, []
    for line in sidecar.splitlines():
        try:
            found = check(json.loads(line), {"report.pdf": report}, roots, now=now)
        except (ValueError, RecursionError):
            return False, roles
        if not found.valid:
            return False, roles
        roles += [role for role in said_in(line) if role not in roles]
    return True, roles


def score_checker(judge: Judge, world: World) -> set[str]:
    """The names of the rows that a checker judges wrongly."""
    return {
        a.name
        for a in ATTACKS
        if judge(a.build(world), a.report(world), ders(a.trust(world)), a.now) != (a.valid, a.roles)
    }


# ── the table ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda row: row.name)
def test_our_checker_judges_every_row_rightly(world: World, attack: Attack) -> None:
    """And every fault has its plain line; nothing is ever raised."""
    trust = ders(attack.trust(world))
    sidecar, report = attack.build(world), attack.report(world)
    found = examine(sidecar, report, trust, quick(report, trust, now=attack.now), attack.now)
    assert (found.valid, found.roles()) == (attack.valid, attack.roles), found.all_problems
    assert bool(found.all_problems) is not attack.valid
    for line in found.all_problems:
        assert line.isprintable()
        assert len(line) < 400
        assert line.endswith(".")


def test_broken_checkers_fail_the_table(world: World) -> None:
    """Always yes fails every attack, always no every honest file, good signatures alone the quiet attacks."""
    assert len(ATTACKS) > 55
    names = {attack.name for attack in ATTACKS}
    assert score_checker(lambda s, *_: (True, said_in(s)), world) >= names - HONEST
    assert score_checker(lambda *_: (False, []), world) >= HONEST
    missed = score_checker(signatures_only, world)
    assert missed >= {
        "middle line removed", "first line removed", "lines swapped", "last line replayed",
        "number given twice", "time in the future", "before its certificate", "role of spaces",
        "certificate spelt otherwise", "another type of statement", "line spelt otherwise",
    }  # fmt: skip
    assert not missed & HONEST


def test_every_bit_counts(world: World) -> None:
    """No bit of the file can be turned over unseen: 400 places, by a fixed seed."""
    sidecar, chance = text(world.lines), random.Random(7)
    for _ in range(400):
        place, bit = chance.randrange(len(sidecar)), 1 << chance.randrange(8)
        changed = sidecar[:place] + bytes([sidecar[place] ^ bit]) + sidecar[place + 1 :]
        found = examine(changed, world.report, ders(world.all), world.pdf, NOW)
        assert not found.valid, place
        assert found.roles() != EVERYONE


def test_a_long_line_is_not_even_parsed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_LINE", len(world.lines[0]) - 1)
    found = examine(text(world.lines[:1]), world.report, ders(world.all), world.pdf, NOW)
    assert not found.valid
    assert "longer than" in found.problems[0]


@settings(max_examples=60)
@given(junk=st.binary(max_size=300), place=st.integers(0, 3))
def test_junk_is_never_an_exception(junk: bytes, place: int) -> None:
    lines = [b"{}", b'{"payload":"e30="}', junk, b"x"]
    lines.insert(place, junk)
    assert examine(text(lines), b"%PDF-", [], PdfCheck(), NOW).problems


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**60) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(value=JSON, field=st.sampled_from(["payload", "payloadType", "signatures", "cert", "sig", "keyid"]))
def test_any_json_is_never_an_exception(value: Any, field: str) -> None:
    """In the place of any field of the envelope."""
    entry: dict[str, Any] = {"keyid": "", "sig": "", "cert": ""}
    envelope: dict[str, Any] = {"payload": "", "payloadType": "", "signatures": [entry]}
    (envelope if field in envelope else entry)[field] = value
    assert examine(json.dumps(envelope).encode() + b"\n", b"%PDF-", [], PdfCheck(), NOW).problems


# ── what an approval is ────────────────────────────────────────────────────────────────────────


def test_no_approvals_is_no_fault_and_everyone_is_missing(world: World, report: Path) -> None:
    found = check_approvals(report, ders(world.all))
    assert found == Approvals((), ())
    assert found.valid
    assert found.roles() == []
    assert found.missing(EVERYONE) == EVERYONE


def test_what_a_line_says(world: World, report: Path) -> None:
    """The standard's names, the digest of the signed file, the hash of the line before; a copy may be renamed."""
    first = add(report, world, world.reviewer, REVIEWER, comment=" fine ", when=NOW - 9 * MINUTE)
    add(report, world, world.officer, name="  Zoe\u0308  ", when=NOW - 8 * MINUTE)
    assert first == report.with_name("report.pdf.approvals.jsonl") == approvals_path(report)
    assert sorted(path.name for path in report.parent.iterdir()) == ["report.pdf", first.name]
    lines = first.read_bytes().splitlines()
    statements = [json.loads(base64.b64decode(json.loads(line)["payload"])) for line in lines]
    for statement in statements:
        assert statement["_type"] == "https://in-toto.io/Statement/v1"
        assert statement["predicateType"] == "urn:clinsafe:approval:v1"
        digest = sha256(report.read_bytes()).hexdigest()
        assert statement["subject"] == [{"name": "report.pdf", "digest": {"sha256": digest}}]
    said = [statement["predicate"] for statement in statements]
    assert said[0] == {
        "name": "Ada", "role": REVIEWER, "meaning": "approval", "comment": "fine", "number": 1, "previous": "",
        "time": (NOW - 9 * MINUTE).isoformat(),
    }  # fmt: skip
    assert (said[1]["number"], said[1]["previous"]) == (2, sha256(lines[0]).hexdigest())
    assert said[1]["name"] == "Zo\u00eb"
    found = check_approvals(report, ders(world.all))
    assert found.valid, found.all_problems
    entry = found.entries[0]
    assert (entry.name, entry.role, entry.comment, entry.time) == ("Ada", REVIEWER, "fine", NOW - 9 * MINUTE)
    assert (entry.signer, entry.fingerprint) == ("R. Reviewer", world.reviewer.fingerprint)
    copy = report.with_name("2026-q3.pdf")
    copy.write_bytes(report.read_bytes())
    approvals_path(copy).write_bytes(first.read_bytes())
    assert check_approvals(copy, ders(world.all)).valid


def test_roles_are_compared_without_capitals_and_outer_spaces(world: World, report: Path) -> None:
    add(report, world, world.officer, "Clinical SAFETY Officer")
    add(report, world, world.reviewer, "Prüfer")
    found = check_approvals(report, ders(world.all))
    wanted = [" clinical safety officer ", "Quality manager", "quality MANAGER ", "Pru\u0308fer"]
    assert found.missing(wanted) == ["Quality manager"]
    assert found.missing([]) == []
    assert found.missing(["Clinical safety officers"]) == ["Clinical safety officers"]


def test_only_trusted_entries_fill_a_role(world: World, report: Path) -> None:
    """A stranger's line neither counts nor keeps others from signing; it stays said."""
    add(report, world, world.stranger, OFFICER)
    add(report, world, world.manager, MANAGER)
    found = check_approvals(report, ders(world.all))
    assert found.roles() == [MANAGER]
    assert found.missing(EVERYONE) == [REVIEWER, OFFICER]
    assert not found.valid
    assert found.intact
    assert [entry.valid for entry in found.entries] == [False, True]
    assert "M. Allory" in found.entries[0].signer


def test_a_time_that_nobody_may_claim_does_not_bind_the_next(world: World, report: Path) -> None:
    """A stranger's line with a late time is no reason to refuse an honest one."""
    line = world.after(0, world.stranger, time=(NOW + 400 * MINUTE).isoformat())
    approvals_path(report).write_bytes(text(line))
    add(report, world, world.officer)
    assert check_approvals(report, ders(world.all)).roles() == [OFFICER]


def test_notes_are_no_problems(world: World, report: Path) -> None:
    """One key in two roles, the auditor's own key, a development key."""
    development = certify(DEVELOPMENT_NAME + "D. Eveloper")
    add(report, world, development, OFFICER)
    add(report, world, development, MANAGER)
    add(report, world, development, MANAGER.upper())
    add(report, world, world.auditor, REVIEWER)
    found = check_approvals(report, ders([*world.all, development]))
    assert found.valid
    assert found.missing(EVERYONE) == []
    assert [entry.development for entry in found.entries] == [True, True, True, False]
    one_key, proves, own = found.notes
    assert OFFICER in one_key
    assert MANAGER in one_key
    assert "one key" in one_key
    assert "proves nothing" in proves
    assert REVIEWER in own
    assert "signed the report" in own
    assert check_approvals(report, ders(world.all)).notes == (own,)


def test_a_fault_takes_the_note_with_it(world: World, report: Path) -> None:
    """Who does not count is not noted."""
    add(report, world, world.auditor)
    sidecar = approvals_path(report)
    sidecar.write_bytes(sidecar.read_bytes()[:-9])
    assert check_approvals(report, ders(world.all)).notes == ()


@pytest.mark.parametrize("kind", ["folder", "dangling link", "unreadable"])
def test_a_sidecar_that_cannot_be_read(
    world: World, report: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is a problem when checked, and one line when added to."""
    sidecar = approvals_path(report)
    if kind == "folder":
        sidecar.mkdir()
    elif kind == "dangling link":
        sidecar.symlink_to("nowhere")
    else:
        sidecar.touch()
        original = Path.open

        def refuse(path: Path, *args: Any, **kwargs: Any) -> Any:
            if path == sidecar:
                raise PermissionError(errno.EACCES, "Permission denied")
            return original(path, *args, **kwargs)

        monkeypatch.setattr(Path, "open", refuse)
    found = check_approvals(report, ders(world.all))
    assert not found.valid
    assert found.problems
    with pytest.raises(ReportError, match="approvals"):
        add(report, world, world.officer)
    assert os.path.lexists(sidecar)


def test_a_report_that_is_none(world: World, tmp_path: Path) -> None:
    """Is the user's error, unless nobody approved anything."""
    path = tmp_path / "report.pdf"
    assert check_approvals(path, ders(world.all)) == Approvals((), ())
    approvals_path(path).write_bytes(text(world.lines))
    with pytest.raises(ReportError, match="no such file"):
        check_approvals(path, ders(world.all))
    path.write_bytes(b"PK")
    with pytest.raises(ReportError, match="not a PDF"):
        check_approvals(path, ders(world.all))
    path.write_bytes(world.report)
    with pytest.raises(KeyFileError, match="trusted certificate"):
        check_approvals(path, [b"junk"])
