"""The detached signature: what it binds, what breaks it, and that OpenSSL agrees."""

from __future__ import annotations

import base64
import copy
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.errors import MissingDependency, ReportError
from clinsafe.reports.dsse import REQUIRED, DsseCheck, attest, check, pae
from clinsafe.reports.sign import DEVELOPMENT_NAME, SigningKey, holder_of

NOW = datetime.now(UTC)
FILES = {"report.pdf": b"%PDF-1.7 a report", "évidence.json": b"{}"}
PREDICATE = {"result": "HELD", "figures": [0.1, 1e21, None, True], "text": "é\u2028"}
KIND = "https://in-toto.io/attestation/test-result/v0.1"


def certify(
    name: str, *, issuer: SigningKey | None = None, commitment: bool = True, authority: bool = False,
    issues: bool | None = None, days: tuple[int, int] = (-100, 100), bits: int = 0,
) -> SigningKey:  # fmt: skip
    """A signing key whose certificate `issuer` signs (default: itself); RSA if `bits`, else P-256."""
    private: Any = rsa.generate_private_key(65537, bits) if bits else ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    parent = certificate_of(issuer).subject if issuer else subject
    issues = authority if issues is None else issues
    usage = x509.KeyUsage(not authority, commitment, False, False, False, issues, authority, False, False)
    certificate = (
        x509.CertificateBuilder(parent, subject, private.public_key(), x509.random_serial_number())
        .not_valid_before(NOW + timedelta(days=days[0]))
        .not_valid_after(NOW + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
        .add_extension(usage, critical=True)
        .sign(issuer.private if issuer else private, hashes.SHA256())
    )
    der = certificate.public_bytes(serialization.Encoding.DER)
    return SigningKey(**vars(holder_of(certificate)), certificate=der, private=private)


def certificate_of(key: SigningKey) -> x509.Certificate:
    return x509.load_der_x509_certificate(key.certificate)


AUTHORITY = certify("Authority", authority=True)
KEYS = {
    "P-256": certify(DEVELOPMENT_NAME + "A. Auditor"),
    "RSA": certify("R. Signer", bits=2048),
    "issued": certify("I. Ssued", issuer=AUTHORITY),
    "other": certify("M. Allory"),
}
KEY = KEYS["P-256"]
TRUST = [certificate_of(KEY)]


def signed(key: SigningKey = KEY) -> dict[str, Any]:
    """An envelope that went through a file."""
    envelope = attest(FILES, key, predicate_type=KIND, predicate=PREDICATE)
    return dict(json.loads(json.dumps(envelope)))


def resigned(
    change: Callable[[dict[str, Any]], object], *, text: Callable[[str], str] = str
) -> dict[str, Any]:
    """An envelope whose statement was changed and properly signed again, by the trusted key."""
    envelope = signed()
    statement = json.loads(base64.b64decode(envelope["payload"]))
    change(statement)
    dumped = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    payload = text(dumped).encode()
    envelope["payload"] = base64.b64encode(payload).decode()
    signature = KEY.private.sign(pae(payload), ec.ECDSA(hashes.SHA256()))  # type: ignore[call-arg, arg-type]
    envelope["signatures"][0]["sig"] = base64.b64encode(signature).decode()
    return envelope


# ── what is valid ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", KEYS)
def test_a_statement_holds(name: str) -> None:
    """By each type of key, trusted itself; the issued one also through its authority."""
    found = check(signed(KEYS[name]), FILES, [certificate_of(KEYS["other"]), certificate_of(KEYS[name])])
    assert found.valid, found.problems
    assert found.problems == ()
    assert (found.signer, found.development) == (KEYS[name].name, name == "P-256")
    assert check(signed(KEYS[name]), FILES, [certificate_of(AUTHORITY)]).trusted is (name == "issued")


def test_the_envelope_is_the_standard_one() -> None:
    """The names of DSSE 1.0 and in-toto Statement v1; the pre-authentication encoding's own example."""
    assert pae(b"hello world", b"http://example.com/HelloWorld") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"  # from the DSSE protocol page
    )
    envelope = signed()
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert set(envelope) == {"payload", "payloadType", "signatures"}
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert envelope["signatures"][0]["keyid"] == KEY.fingerprint
    assert envelope["signatures"][0]["cert"].startswith("-----BEGIN CERTIFICATE-----\n")
    assert set(statement) == {"_type", "subject", "predicateType", "predicate"}
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert [subject["name"] for subject in statement["subject"]] == sorted(FILES)
    assert (statement["predicateType"], statement["predicate"]) == (KIND, PREDICATE)


def test_the_other_rsa_padding_is_read() -> None:
    """PKCS#1 v1.5, as other tools write it; a small RSA key is not."""
    for bits, intact in ((2048, True), (1024, False)):
        key = certify("R. Signer", bits=bits)
        envelope = signed(key)
        message = pae(base64.b64decode(envelope["payload"]))
        signature = key.private.sign(message, padding.PKCS1v15(), hashes.SHA256())  # type: ignore[call-arg, arg-type]
        envelope["signatures"][0]["sig"] = base64.b64encode(signature).decode()
        assert check(envelope, FILES, [certificate_of(key)]).intact is intact


# ── what is not ────────────────────────────────────────────────────────────────────────────────


def fault(found: DsseCheck) -> set[str]:
    return {fact for fact in REQUIRED if not getattr(found, fact)}


def test_the_files_are_bound() -> None:
    """Changed, missing, added, renamed, swapped: each names the file."""
    report, evidence = FILES["report.pdf"], FILES["évidence.json"]
    for files, name in (
        (FILES | {"report.pdf": report + b"\n"}, "report.pdf"),
        ({"report.pdf": report}, "évidence.json"),
        (FILES | {"more.txt": b""}, "more.txt"),
        ({"other.pdf": report, "évidence.json": evidence}, "other.pdf"),
        ({"report.pdf": evidence, "évidence.json": report}, "report.pdf"),
        ({}, "report.pdf"),
    ):
        found = check(signed(), files, TRUST)
        assert fault(found) == {"subjects_match"}
        assert name in found.problems[0]


def test_who_and_when() -> None:
    """A stranger; an issuer that is no authority, has expired or is an impostor; a certificate past use."""
    leaf = certify("Leaf", issuer=KEYS["other"])
    old = certify("Old authority", authority=True, days=(-9, -1))
    impostor = certify("Authority", authority=True)
    by_old = certify("Young", issuer=old)
    halves = [certify("Half", authority=True, issues=False), certify("Half", authority=False, issues=True)]
    cases: list[tuple[SigningKey, list[SigningKey], set[str]]] = [
        (KEY, [], {"trusted"}),
        (KEY, [KEYS["other"], AUTHORITY], {"trusted"}),
        (leaf, [KEYS["other"]], {"trusted"}),
        (by_old, [old], {"trusted"}),
        (KEYS["issued"], [impostor], {"trusted"}),
        (certify("Leaf", issuer=halves[0]), halves, {"trusted"}),
        (certify("Leaf", issuer=halves[1]), halves, {"trusted"}),
        (expired := certify("Old", days=(-9, -1)), [expired], {"within_validity"}),
        (silent := certify("Silent", commitment=False), [silent], {"key_usage_ok"}),
    ]
    for key, trust, faults in cases:
        found = check(signed(key), FILES, [certificate_of(one) for one in trust])
        assert fault(found) == faults
        assert len(found.problems) == 1
        assert found.signer == key.name
    assert check(signed(expired), FILES, [certificate_of(expired)], now=NOW - timedelta(days=5)).valid


def test_another_key_cannot_stand_in() -> None:
    """A foreign signature under the trusted certificate, and a foreign certificate over our signature."""
    envelope, foreign = signed(), signed(KEYS["other"])
    envelope["signatures"][0]["sig"] = foreign["signatures"][0]["sig"]
    assert fault(check(envelope, FILES, TRUST)) == {"intact"}
    envelope = signed()
    envelope["signatures"][0]["cert"] = foreign["signatures"][0]["cert"]
    assert fault(check(envelope, FILES, TRUST)) == {"intact", "trusted"}


def respelt() -> dict[str, Any]:
    """The same payload in another spelling of base64: the spare bits of its last letter set."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    envelope: dict[str, Any] = {"payload": ""}
    filler: list[int] = []
    while not envelope["payload"].endswith("="):
        filler.append(0)
        envelope = resigned(lambda statement: statement.update(predicate={"x": filler}))
    body = envelope["payload"].rstrip("=")
    other = body[:-1] + alphabet[alphabet.index(body[-1]) + 1] + "=" * (len(envelope["payload"]) - len(body))
    assert base64.b64decode(other) == base64.b64decode(envelope["payload"])
    return envelope | {"payload": other}


TAMPERED: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "other predicate": (lambda: signed() | {"payload": resigned(lambda s: s.update(predicate={}))["payload"]},
                          "changed after"),
    "another payload type": (lambda: signed() | {"payloadType": "text/plain"}, "changed after signing"),
    "another key id": (lambda: signed() | {"signatures": [signed()["signatures"][0] | {"keyid": "00"}]},
                       "another key"),
    "two signatures": (lambda: signed() | {"signatures": signed()["signatures"] * 2}, "exactly one"),
    "another statement type": (lambda: resigned(lambda s: s.update(_type="x")), "no statement of type"),
    "a subject twice": (lambda: resigned(lambda s: s["subject"].append(s["subject"][0])), "not those"),
    "no subject": (lambda: resigned(lambda s: s.update(subject=[])), "not those"),
    "other spelling": (lambda: resigned(lambda s: None, text=lambda t: t + " "), "canonical"),
    "other base64": (respelt, "damaged"),
    "a name twice": (lambda: resigned(lambda s: None, text=lambda t: t.replace("{", '{"_type":"x",', 1)),
                     "canonical"),
}  # fmt: skip


@pytest.mark.parametrize("case", TAMPERED)
def test_tampering(case: str) -> None:
    """Also with a proper signature: a statement that two programs read differently is refused."""
    build, told = TAMPERED[case]
    found = check(build(), FILES, TRUST)
    assert not found.valid
    assert told in " ".join(found.problems)


ENVELOPE = signed()


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_letter_counts(data: st.DataObject) -> None:
    """One letter of the payload or the signature changed: never valid, never an exception."""
    envelope = copy.deepcopy(
        ENVELOPE
    )  # one signature for all runs: its length varies, and so would the draws
    entry = envelope if data.draw(st.booleans()) else envelope["signatures"][0]
    field = "payload" if entry is envelope else "sig"
    text = entry[field]
    place = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters().filter(lambda one: one != text[place]))
    entry[field] = text[:place] + letter + text[place + 1 :]
    assert not check(envelope, FILES, TRUST).valid


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["payload", "signatures", "sig", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["", "payload", "payloadType", "signatures", "sig", "cert", "keyid"]))
@settings(max_examples=150, deadline=None)
def test_nonsense_is_a_problem_not_a_traceback(junk: Any, where: str) -> None:
    """Any JSON as the envelope or in any of its places."""
    envelope = copy.deepcopy(ENVELOPE)
    if where == "":
        envelope = junk
    else:
        (envelope if where in envelope else envelope["signatures"][0])[where] = junk
    found = check(envelope, FILES, TRUST)
    if not (where == "keyid" and junk in (None, "")):
        assert not found.valid
        assert all("\n" not in line for line in found.problems)


def test_a_hostile_file_name_cannot_drive_the_terminal() -> None:
    """Names come from the statement, so they are shown escaped."""
    found = check(
        resigned(lambda s: s["subject"].append({"name": "\x1b[2J", "digest": {"sha256": ""}})), FILES, TRUST
    )
    assert "\x1b" not in "".join(found.problems)
    assert "x1b" in "".join(found.problems)


def test_a_statement_that_cannot_be_made() -> None:
    """What JSON cannot hold exactly is refused before it is signed."""
    for predicate in ({"x": math.nan}, {"x": 2**60}, {"x": {1, 2}}, {"x": "\ud800"}, {1: "x"}):
        with pytest.raises(ReportError, match="predicate is not JSON"):
            attest(FILES, KEY, predicate_type=KIND, predicate=predicate)  # type: ignore[arg-type]
    for files, kind in (({}, KIND), (FILES, "")):
        with pytest.raises(ReportError, match="at least one file"):
            attest(files, KEY, predicate_type=kind, predicate={})


def test_an_empty_result_is_not_valid() -> None:
    """Facts default to False."""
    assert not DsseCheck().valid
    assert check({}, FILES, TRUST).problems


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each error names the extra of what the user wanted to do; it is no verdict about the file."""
    monkeypatch.setitem(sys.modules, "rfc8785", None)
    with pytest.raises(MissingDependency, match=r"verifying needs rfc8785.*clinsafe\[verify\]"):
        check(ENVELOPE, FILES, TRUST)
    with pytest.raises(MissingDependency, match=r"signing needs rfc8785.*clinsafe\[audit\]"):
        attest(FILES, KEY, predicate_type=KIND, predicate={})


@pytest.mark.slow
@pytest.mark.parametrize("name", KEYS)
def test_openssl_agrees(tmp_path: Path, name: str) -> None:
    """The signature verifies over the encoded payload and over no other."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed (Debian package openssl)")
    envelope = signed(KEYS[name])
    public = certificate_of(KEYS[name]).public_key()
    (tmp_path / "key.pem").write_bytes(
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    (tmp_path / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    payload = base64.b64decode(envelope["payload"])
    pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"] if name == "RSA" else []
    for content, agreed in ((payload, True), (payload.replace(b"HELD", b"PASS"), False)):
        (tmp_path / "content").write_bytes(pae(content))
        command = ["openssl", "dgst", "-sha256", *pss, "-verify", str(tmp_path / "key.pem"),
                   "-signature", str(tmp_path / "signature"), str(tmp_path / "content")]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=99)
        assert (done.returncode == 0) is agreed, done.stderr
