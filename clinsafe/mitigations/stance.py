"""What a passage answers to a question: affirms, denies, leaves uncertain, or is silent (decision D2).

The question is read as the claim it asks about (`asking.as_claim`) and compared with the passage by all filters. Per
sentence of the passage a contradiction denies, a certainty of 1 to 3 (decision D4) or an open sign leaves uncertain,
and an agreement affirms, provided that the sentence names what is asked and that each order, quantity, number and role
that is asked is met. A sentence that no filter aligned still answers where it says all that is asked in plain words
(`plain_words`). What is said of relatives, in conditions, or of the past alone answers nothing.

"Affirms" means that it is so, as asked: "No allergies" affirms "Is there no allergy?".
"""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.guarded import Stance
from clinsafe.mitigations.absence import absence_notes
from clinsafe.mitigations.answer import Answer, Answering
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.question import question_of
from clinsafe.mitigations.stack import Stack
from clinsafe.mitigations.topic import lines_of
from clinsafe.protocols import Finding

__all__ = ["absence_notes", "stance"]


def stance(stack: Stack, claim: TextFacts, passage: TextFacts) -> tuple[Stance, tuple[Finding, ...]]:
    """A passage's answer and the findings it rests on; none where it is silent.

    What it answers is uncertain where a filter did not look, for that one might have gainsaid it.

    Args:
        claim: facts of the question read as a claim.
        passage: facts of the passage.
    """
    question = question_of(claim)
    if not question.keys:
        return "silent", ()
    said = lines_of(passage)
    found: dict[int, list[Finding]] = {}
    comparison = stack.compare(claim, passage)
    for finding in comparison.findings:
        if finding.verdict != "not_comparable":
            found.setdefault(said.at(finding.passage_span), []).append(finding)
    answers = [
        Answering(question, line, said.by_line.get(at, {}), found.get(at, ())).answer()
        for at, line in enumerate(said.lines)
    ]
    answer, grounds = joined([answer for answer in answers if answer is not None])
    return ("uncertain" if answer != "silent" and comparison.unchecked else answer), grounds


def joined(answers: Sequence[Answer]) -> Answer:
    """The answer of a passage from those of its sentences, in order.

    Affirmed here and denied there is uncertain, with the findings of both. A later sentence settles what an earlier one
    left open ("PE was suspected. CTPA confirmed PE."), and opens what an earlier one settled.
    """
    if not answers:
        return "silent", ()
    decided = {one for one, _ in answers if one != "uncertain"}
    if len(decided) != 1 or answers[-1][0] == "uncertain":
        return "uncertain", tuple(finding for _, findings in answers for finding in findings)
    final = answers[-1][0]
    return final, tuple(finding for one, findings in answers if one == final for finding in findings)
