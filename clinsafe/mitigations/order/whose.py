"""Whom a cue speaks of: the patient, or a relative named in the same clause."""

from __future__ import annotations

from clinsafe.mitigations.order.scan import Scan

PATIENT = "patient"
_OPENING = 4  # tokens in which a relative opens a sentence: "the patient's father"


def whose_state(scan: Scan, at: int) -> str:
    """Whose state a cue at this token tells ("her father still smokes"); what a relative reports is the patient's."""
    kin = _subject(scan, at)
    if kin is None or scan.tokens[kin + 1].lemma in scan.rules.grammar.reports:
        return PATIENT
    return scan.rules.kin[scan.tokens[kin].lower]


def whose_events(scan: Scan, at: int) -> str:
    """Whose events a cue at this token puts in order; a relative's only where the verb says that he or she had them.

    What a relative did ("his wife called before he collapsed") belongs to the patient's story.
    """
    kin = _subject(scan, at)
    if kin is None or scan.tokens[kin + 1].lower not in scan.rules.grammar.undergoes:
        return PATIENT
    return scan.rules.kin[scan.tokens[kin].lower]


def _subject(scan: Scan, at: int) -> int | None:
    """Where the relative stands who is the subject of the clause up to this token."""
    grammar, (low, _) = scan.rules.grammar, scan.segment(at)
    for i in range(at - 1, low, -1):
        lower = scan.tokens[i].lower
        if scan.tokens[i].text == "," or lower in grammar.persons:
            return None
        opens = i <= low + _OPENING or (i > 1 and scan.soft(i - 2))
        if opens and lower in scan.rules.kin and scan.tokens[i - 1].lower in grammar.possessives:
            return i
    return None
