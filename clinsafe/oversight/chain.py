"""The chain: each record carries the code of the one before, so that none can be altered, cut out or moved unseen.

::

    mac = HMAC-SHA-256(key, RFC 8785 of {"prev": mac of the record before, "record": …, "seq": 1, 2, 3, …})

The first record opens the log: it holds the log's id and the id of its key. A record of event ``rotated`` names the key
of all that follow. Whether a whole log holds together is seen by `clinsafe.oversight.walk`.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import rfc8785

from clinsafe.errors import UsageError
from clinsafe.oversight.keys import LogKey

GENESIS = "0" * 64
"""What stands for the code before the first record."""
LARGEST = 1_000_000  # bytes of one record
_LINE = re.compile(
    r'\{"mac":"([0-9a-f]{64})","prev":"([0-9a-f]{64})","record":(\{.*\}),"seq":([1-9][0-9]{0,14})\}'
)


@dataclass(frozen=True, slots=True)
class Row:
    """One record as it is kept.

    Attributes:
        seq: 1, 2, 3, …
        prev: code of the record before; `GENESIS` for the first.
        mac: its own code.
        text: the record as canonical JSON.
        place: where it was read (``line 7``), "" for a new one.
    """

    seq: int
    prev: str
    mac: str
    text: str
    place: str = ""

    @property
    def body(self) -> bytes:
        """What the code is computed over: RFC 8785 of prev, record and seq."""
        return f'{{"prev":"{self.prev}","record":{self.text},"seq":{self.seq}}}'.encode()

    @property
    def line(self) -> str:
        """The row as one line of JSON, canonical, without its line end."""
        return f'{{"mac":"{self.mac}","prev":"{self.prev}","record":{self.text},"seq":{self.seq}}}'

    @property
    def record(self) -> dict[str, Any]:
        """The record; only of a row that was found authentic."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    @property
    def receipt(self) -> str:
        """``seq:mac``: who keeps it can show later that this record is gone or was altered."""
        return f"{self.seq}:{self.mac}"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A place in the log that holds no record. `why` never quotes what stands there; `kind` is a `walk.FaultKind`."""

    place: str
    why: str
    kind: Literal["unreadable", "missing", "changed"] = "unreadable"


def link(key: LogKey, prev: str, seq: int, record: Mapping[str, Any]) -> Row:
    """The row of a new record; raises as `canonical` does."""
    return seal(key, prev, seq, canonical(record))


def seal(key: LogKey, prev: str, seq: int, text: str) -> Row:
    """The row of a record that `canonical` wrote."""
    row = Row(seq, prev, "", text)
    return Row(seq, prev, key.mac(row.body), text)


def canonical(record: Mapping[str, Any]) -> str:
    """A record as RFC 8785 writes it.

    Raises:
        UsageError: the record is not JSON, too large, or holds text (see `refuse_text`).
    """
    refuse_text(record)
    try:
        data = rfc8785.dumps(dict(record))
    except ValueError as error:
        raise UsageError(f"a log record must be JSON with finite numbers ({type(error).__name__})") from None
    if len(data) > LARGEST:
        raise UsageError(f"a log record has at most {LARGEST:,} bytes, this one has {len(data):,}")
    return data.decode()


def refuse_text(value: object, where: str = "record") -> None:
    """Refuse what looks like text: ids, codes and times hold no blank (decision D11). The message does not quote it.

    Raises:
        UsageError: a string or a field's name that holds white space, or is longer than 200 letters.
    """
    if isinstance(value, str):
        # of all that is white, the plain blank alone counts as printable
        if len(value) > 200 or " " in value or not value.isprintable():
            raise UsageError(
                f"{where} holds text; a decision log takes ids, codes and numbers without blanks"
            )
    elif isinstance(value, Mapping):
        for number, (name, inner) in enumerate(value.items(), start=1):
            refuse_text(name, f"{where}: the name of field {number}")
            refuse_text(inner, f"{where}.{name}")
    elif isinstance(value, list | tuple):
        for inner in value:
            refuse_text(inner, f"{where}[]")


def parse(line: bytes, place: str) -> Row | Unreadable:
    """One line of a log; only the very bytes that `Row.line` writes are a row."""
    try:
        found = _LINE.fullmatch(line.decode())
    except UnicodeDecodeError:
        return Unreadable(place, "it is not UTF-8")
    if found is None:
        return Unreadable(place, "it is not a record of a log")
    mac, prev, text, seq = found.groups()
    return Row(int(seq), prev, mac, text, place)


def authentic(row: Row | Unreadable, key: LogKey | None) -> bool:
    """Whether the row is, byte for byte, one that was made with this key."""
    if key is None or isinstance(row, Unreadable):
        return False
    try:
        return hmac.compare_digest(key.mac(row.body), row.mac)
    except (UnicodeEncodeError, TypeError):  # from a database: no UTF-8, or no ASCII where the code should be
        return False
