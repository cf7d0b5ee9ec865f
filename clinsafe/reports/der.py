"""Is this the one way to write an ASN.1 value? Linear in its size, whatever an attacker puts into it.

asn1crypto can encode a value again to compare, but takes time exponential in the nesting: a timestamp inside a
signature took it over a minute.
"""

from __future__ import annotations

DEEPEST = 64  # levels; a signature with a timestamp has about 20
BOOLEAN, INTEGER, BIT_STRING, NULL, OBJECT, SEQUENCE, SET = 1, 2, 3, 5, 6, 16, 17


def is_der(data: bytes) -> bool:
    """Whether `data` is exactly one value in DER: definite and shortest lengths, shortest numbers, sorted sets, and
    no string in pieces.

    What only its type could tell (an implicit tag hides a set) is not checked.
    """
    return _is_der(data, 0)


def _is_der(data: bytes, depth: int) -> bool:
    from asn1crypto import parser

    if depth > DEEPEST:
        return False
    try:
        kind, constructed, tag, _, content, _ = parser.parse(data, strict=True)
    except ValueError:
        return False
    if parser.emit(kind, constructed, tag, content) != data:
        return False
    if kind == 0 and (tag == 0 or bool(constructed) != (tag in (SEQUENCE, SET))):
        return False
    if not constructed:
        return kind != 0 or _is_shortest(tag, content)
    children, at = [], 0
    while at < len(content):
        try:
            size = parser.peek(content[at:])
        except ValueError:
            return False
        children.append(content[at : at + size])
        at += size
    if (kind, tag) == (0, SET) and children != sorted(children):
        return False
    return all(_is_der(child, depth + 1) for child in children)


def _is_shortest(tag: int, content: bytes) -> bool:
    """A primitive value of a universal type, written in its one way."""
    if tag == BOOLEAN:
        return content in (b"\x00", b"\xff")
    if tag == NULL:
        return not content
    if tag == INTEGER:
        return len(content) > 0 and not (
            len(content) > 1
            and ((content[0] == 0 and content[1] < 0x80) or (content[0] == 0xFF and content[1] >= 0x80))
        )
    if tag == BIT_STRING:
        unused = content[0] if content else 8
        return unused == 0 or (unused < 8 and len(content) > 1 and content[-1] & ((1 << unused) - 1) == 0)
    if tag == OBJECT:
        ends = [0, *(place + 1 for place, byte in enumerate(content) if byte < 0x80)]
        return ends[-1] == len(content) > 0 and all(content[start] != 0x80 for start in ends[:-1])
    return True
