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
from dataclasses import dataclass, replace

from clinsafe.guarded import Stance
from clinsafe.mitigations.absence import absence_notes
from clinsafe.mitigations.another import apart
from clinsafe.mitigations.answer import Answer, Answering
from clinsafe.mitigations.asking import front_tokens
from clinsafe.mitigations.bars import (
    Asker,
    asker,
    barred,
    besides,
    gave_up,
    gave_up_asked,
    holds_now,
    lacks,
    of_kin,
    on_other_side,
    unsettled,
)
from clinsafe.mitigations.doubt import doubt
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.orders import asks_for_order, order
from clinsafe.mitigations.permission import Asked, bans, duty_of, permission, permission_asked
from clinsafe.mitigations.question import Question, question_of
from clinsafe.mitigations.results import lacking, results, told_no
from clinsafe.mitigations.stack import Stack
from clinsafe.mitigations.threshold import limits, threshold
from clinsafe.mitigations.topic import Lines, lines_of
from clinsafe.mitigations.wording import Passage, Worded, aims, worded
from clinsafe.protocols import Finding
from clinsafe.text import Reading

__all__ = ["absence_notes", "stance"]


def stance(
    stack: Stack, claim: TextFacts, passage: TextFacts, *, query: Reading | None = None, text: str = ""
) -> tuple[Stance, tuple[Finding, ...]]:
    """A passage's answer and the findings it rests on; none where it is silent.

    What it answers is uncertain where a filter did not look, for that one might have gainsaid it.

    Args:
        claim: facts of the question read as a claim.
        passage: facts of the passage.
        query: the query as read, and
        text: the passage's text: with both, the words that the facts do not keep are looked at too (leave and order,
            doubt, people at large).
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
    words = worded(text, said.lines, stack.reader.vocabulary) if query is not None and text else Passage(())
    tokens = front_tokens(query) if query is not None else ()
    asked = asker(tokens)
    if words.sentences:
        words = apart(words, text, stack.reader.vocabulary, asked.text, question.keys)
    answers = []
    for at, line in enumerate(said.lines):
        one = Answering(question, line, said.by_line.get(at, {}), found.get(at, ())).answer()
        if words.sentences and one is not None:
            one = _in_words(one, words.sentences[at], asked, question)
        if one is not None:
            answers.append(one)
    answer, grounds = joined(answers)
    if words.sentences and asks_for_order(asked.text):
        answer, grounds = order(question, words)
    elif words.sentences:
        open_words = Looking(question, claim, passage, said, words, permission_asked(tokens), asked)
        answer, grounds = open_words.again(answer, grounds)
    return ("uncertain" if answer != "silent" and comparison.unchecked else answer), grounds


def _in_words(answer: Answer, sentence: Worded, asked: Asker, question: Question) -> Answer | None:
    """A sentence's answer once its words are looked at."""
    said, grounds = answer
    if said == "affirms" and (aims(sentence.text) or besides(asked, sentence)):
        return None
    if barred(asked, sentence) or on_other_side(asked, sentence, question.keys):
        return None
    if said == "denies" and not question.denies and holds_now(sentence, question.keys):
        return "affirms", (replace(grounds[0], verdict="compatible", severity="note", rule="stance.current"),)
    if (
        said == "denies"
        and (question.past or asked.text.startswith(("has ", "have ")))
        and gave_up(sentence)
        and not gave_up_asked(asked)
    ):
        return None  # who stopped did it once
    if said == "denies" and question.denies and lacks(sentence):
        return None  # "agenesis of the right kidney" says no less than "missing"
    if said == "denies" and sentence.firmly_open and not any(one.hazard == "negation" for one in grounds):
        return "uncertain", grounds
    if said == "affirms" and not question.denies and told_no(question, sentence):
        return None
    if said == "affirms" and not question.denies and _ban_is_news(sentence, asked):
        return None
    return answer


def _asks_of_old(question: Question, asked: Asker) -> bool:
    """ "Has he smoked?": whether it ever was, not whether it ended."""
    old = question.past or asked.text.startswith(("has ", "have "))
    return old and not gave_up_asked(asked)


def _ban_is_news(sentence: Worded, asked: Asker) -> bool:
    """Whether the sentence forbids something, and the question does not ask for a ban."""
    return duty_of(sentence) == "forbidden" and not bans(asked.text)


@dataclass(frozen=True, slots=True)
class Looking:
    """A second look at a passage: limits, leave and order, doubts."""

    question: Question
    claim: TextFacts
    passage: TextFacts
    said: Lines
    words: Passage
    leave: Asked | None
    asked: Asker

    def barred(self, sentence: Worded) -> bool:
        """Whether a sentence is about something else than what is asked."""
        return barred(self.asked, sentence)

    def unlike(self, sentence: Worded) -> bool:
        """`barred`, or what a sentence leaves open is another person's."""
        permits = self.leave is not None and not sentence.firmly_open  # "may be crushed" gives leave
        return permits or self.barred(sentence) or of_kin(self.asked, sentence)

    def again(self, answer: Stance, grounds: tuple[Finding, ...]) -> Answer:
        """The passage's answer, given that of its sentences."""
        question, words = self.question, self.words
        if wanted := limits(self.claim):
            told = threshold(wanted, question.line.keys, self.passage, self.said, words, self.barred)
            if told is None and all(one.hazard == "numerical" for one in grounds):
                return "silent", ()  # the filter compares two values; only the limit is asked
            return told or (answer, grounds)
        soft = answer == "uncertain" and any(one.hazard == "hedging" for one in grounds)  # "may be given"
        if self.leave is not None and (answer == "silent" or soft):
            told = permission(self.leave, question, words)
            if told is not None:
                return told
        if answer == "uncertain":
            return answer, grounds
        if answer != "silent" and unsettled(words.sentences[-1]):
            return "uncertain", grounds
        if answer == "silent":
            told = results(question, self.said, words, self.barred) or lacking(question, words, self.barred)
            answer, grounds = told or (answer, grounds)
        return doubt(question, self.said, words, self.unlike) or (answer, grounds)


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
