"""DER or not: against cases written by hand, OpenSSL's and pyca's encodings, and time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.reports.der import DEEPEST, is_der
from tests.reports.signing import certify

GOOD = ["0500", "0101ff", "010100", "020100", "0201ff", "02020080", "0202ff7f", "03020780", "030100", "0603551d0f",
        "3000", "3006020101020102", "3106020101020102", "a003020101", "0c026869", "0400"]  # fmt: skip
BAD = {
    "nothing": "",
    "cut off": "0201",
    "something after it": "050000",
    "a long form that is not needed": "02810101",
    "an indefinite length": "30800000",
    "a boolean that is neither": "010101",
    "a boolean of two bytes": "0102ffff",
    "an integer of no byte": "0200",
    "a zero in front": "02020001",
    "a sign in front": "0202ffff",
    "unused bits that are set": "03020781",
    "eight unused bits": "03020880",
    "an object identifier with a zero in front": "0603558001",
    "an object identifier cut off": "060355ff",
    "a set that is not sorted": "3106020102020101",
    "a child cut off": "30030202ff",
    "a fault inside": "3003010101",
    "an octet string in pieces": "2403040100",
    "a sequence that is not made of parts": "100101",
    "a null with something in it": "050100",
    "an end of contents": "0000",
}


@pytest.mark.parametrize("value", GOOD)
def test_the_one_way(value: str) -> None:
    assert is_der(bytes.fromhex(value))


@pytest.mark.parametrize("case", BAD)
def test_other_ways(case: str) -> None:
    assert not is_der(bytes.fromhex(BAD[case]))


def test_a_real_certificate() -> None:
    """And one bit of its outer length makes it none."""
    der = certify("C").certificate
    assert is_der(der)
    assert not is_der(der[:3] + bytes([der[3] ^ 1]) + der[4:])


@given(st.integers())
def test_integers(number: int) -> None:
    """Agrees with another encoder."""
    from asn1crypto import core

    assert is_der(core.Integer(number).dump())


@given(st.binary(max_size=40))
def test_any_bytes(data: bytes) -> None:
    """An answer, never an exception."""
    assert is_der(data) in (True, False)


def nested(levels: int) -> bytes:
    """A null inside so many sequences."""
    from asn1crypto import parser

    value = b"\x05\x00"
    for _ in range(levels):
        value = parser.emit(0, 1, 16, value)
    return value


def test_nesting_costs_no_time() -> None:
    """Encoding again takes twice the time for each level: this would not end. Too deep is refused."""
    assert is_der(nested(DEEPEST))
    assert not is_der(nested(DEEPEST + 1))
    assert not is_der(nested(5000))
