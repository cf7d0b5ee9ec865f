"""Valid is not yet accepted: pages that nobody could read, and signatures that are still missing, exit with 1."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from clinsafe.content import Content
from clinsafe.reports import pdf
from clinsafe.reports.countersign import add_approval
from clinsafe.reports.evidence import canonical, from_bytes, to_bytes
from clinsafe.reports.keys import load_key, make_development_key
from clinsafe.reports.render import html
from clinsafe.reports.sign import sign_pdf
from clinsafe.reports.verify import verify

pytestmark = [  # whole reports are rendered
    pytest.mark.slow, pytest.mark.usefixtures("shared_renders", "shared_intervals"),
]  # fmt: skip


@pytest.fixture(scope="module")
def trust(signing_key, tmp_path_factory):
    path = tmp_path_factory.mktemp("trust") / "trust.der"
    path.write_bytes(signing_key.certificate)
    return path


@pytest.fixture(scope="module")
def make(one_hazard, signing_key, shared_renders, tmp_path_factory):
    def made(change, page: str | None = None):
        plain = json.loads(to_bytes(one_hazard.evidence))
        change(plain)
        evidence = from_bytes(canonical(plain))
        drawn = pdf.render(page or html(evidence, Content()), to_bytes(evidence), evidence.created, Content())
        path = tmp_path_factory.mktemp("report") / "report.pdf"
        path.write_bytes(sign_pdf(drawn, signing_key, meaning="author"))
        return path

    return made


def test_pages_of_unknown_templates_are_not_accepted_whatever_they_say(make, trust):
    """The signer claims templates that are not installed here: such pages may say anything."""

    def other_template(e):
        e["content"]["reports/templates/front.html.j2"] = "0" * 64

    path = make(other_template, page="<p>All six hazards PASS. RELEASED.</p>")
    result = verify(path, [trust])
    assert result.valid
    assert not result.accepted
    assert result.verdict.startswith("VALID RECORD, PAGES NOT READ, NOT ACCEPTED: ")
    assert "front.html.j2" in result.rerender_reason
    assert result.to_json()["accepted"] is False
    alone = verify(path, [trust], record_only=True)
    assert alone.accepted
    assert alone.verdict.startswith("VALID RECORD, PAGES NOT READ: ")


@pytest.fixture(scope="module")
def awaiting(make):
    """A report that must be signed in two roles."""
    roles = ["Clinical Safety Officer", "quality manager"]
    return make(lambda e: e["declaration"].update(required_roles=roles))


def test_a_report_is_accepted_when_everybody_has_signed_who_has_to(awaiting, trust, signing_key, tmp_path):
    first = verify(awaiting, [trust])
    assert first.valid
    assert not first.accepted
    assert first.verdict.startswith("VALID, NOT YET APPROVED: ")
    assert first.missing_roles == ["Clinical Safety Officer", "quality manager"]
    certificate = signing_key.certificate
    officer = {
        "name": "A. Example",
        "role": "clinical safety officer",
        "meaning": "approval",
        "trust": [certificate],
    }
    add_approval(awaiting, signing_key, **officer)
    assert verify(awaiting, [trust]).missing_roles == ["quality manager"]
    stranger = load_key(make_development_key(tmp_path / "keys", "Stranger", b"x" * 12), b"x" * 12)
    both = [certificate, stranger.certificate]
    add_approval(awaiting, stranger, **officer | {"role": "quality manager", "trust": both})
    assert verify(awaiting, [trust]).missing_roles == ["quality manager"]  # nobody here trusts that key
    add_approval(awaiting, signing_key, **officer | {"role": "quality manager"})
    last = verify(awaiting, [trust])
    assert last.accepted, last.problems
    assert last.verdict.startswith("VALID: ")
    assert [a["role"] for a in last.to_json()["approvals"] if a["valid"]] == [
        "clinical safety officer", "quality manager",
    ]  # fmt: skip


def test_an_edited_approval_makes_the_file_invalid(awaiting, trust):
    sidecar = awaiting.with_name("report.pdf.approvals.jsonl")
    lines = sidecar.read_bytes().splitlines(keepends=True)
    sidecar.write_bytes(b"".join(lines[1:]))
    result = verify(awaiting, [trust])
    sidecar.write_bytes(b"".join(lines))
    assert not result.accepted
    assert not result.valid
    assert any("approval of quality manager" in problem for problem in result.problems), result.problems


def test_a_signature_from_before_the_record_is_found(make, trust):
    """Backdating: the signer's clock may be off by minutes, not by an hour."""
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="seconds")
    result = verify(make(lambda e: e.update(created=later)), [trust])
    assert not result.valid
    assert "before the record was written" in result.verdict
