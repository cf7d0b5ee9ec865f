"""Is a record complete: its form, its criteria, every case of its suite, its baselines? And by whose criteria judged?

What the installed suite and checklist can contradict is a fault; what only another installation could is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from clinsafe.adapters.lexical import Bm25, TokenJaccard
from clinsafe.benchmarks import hybrid
from clinsafe.benchmarks.published import load_published
from clinsafe.benchmarks.scoring import CaseResult, score_with_scorer
from clinsafe.benchmarks.suite import FOLDER, SENTENCES, Case, load_card, load_suite
from clinsafe.checklist.fmea import load_fmea
from clinsafe.checklist.gates import load_protocol
from clinsafe.checklist.hazards import load_hazards
from clinsafe.checklist.items import load_items
from clinsafe.content import Content, sha256_file
from clinsafe.errors import UsageError
from clinsafe.reports.evidence import LIMITS, CaseRecord, Evidence, SystemRecord, criteria_hash, to_bytes
from clinsafe.version import VERSION

CLOSE = 1e-6
CRITERIA = ("checklist/gates.yaml", "checklist/fmea.yaml", "checklist/items.yaml", "checklist/hazards.yaml",
            "benchmarks/published.yaml")  # fmt: skip


def incomplete(evidence: Evidence, record: bytes) -> list[str]:
    """What is missing from the record, or is not what this installation knows it to be."""
    faults = []
    if to_bytes(evidence) != record:
        faults.append("the record is not in canonical form: it was edited, or written by another program")
    if criteria_hash(evidence.criteria) != evidence.criteria_sha256:
        faults.append("the acceptance criteria are not the ones that were hashed before the run")
    for system in evidence.systems:
        ids = [case.id for case in system.cases]
        if len(set(ids)) < len(ids):
            faults.append(f"{system.label}: a case is recorded twice")
        if dict(Counter(case.hazard for case in system.cases)) != evidence.suite.counts:
            faults.append(f"{system.label}: the number of cases differs from the suite's")
    if evidence.tool.get("version") == VERSION and evidence.limits != list(LIMITS):
        faults.append("the limits of the audit are not the ones that this version states")
    return faults + (_against_the_suite(evidence) if suite_compared(evidence) else [])


def suite_compared(evidence: Evidence) -> bool:
    """Whether the installed suite is the very one of the record, so that no case can be missing unseen."""
    content = Content()
    known = load_card(content).counts
    files = [f"{FOLDER}/{hazard}.jsonl" for hazard in evidence.suite.counts] + [f"{FOLDER}/suite.yaml"]
    return set(evidence.suite.counts) <= set(known) and all(
        sha256_file(content.path(name)) == evidence.content.get(name) for name in files
    )


def _against_the_suite(evidence: Evidence) -> list[str]:
    """Cases, the words about them, and the baselines: all of it follows from the installed suite."""
    content = Content()
    card = load_card(content)
    cases = load_suite(content, hazards=list(evidence.suite.counts))
    faults = []
    for system in evidence.systems:
        faults += _other_cases({case.id: case for case in cases}, system.cases, system.label)
    said = evidence.suite
    if (said.title, said.version, said.tier, said.authorship, said.second_reader, said.clinician_review,
            said.not_covered) != (card.title, card.suite_version, "written", card.authorship, card.second_reader,
                                  card.clinician_review, card.not_covered):  # fmt: skip
        faults.append("what the record says about the suite is not what the suite's card says")
    return faults or _other_baselines(evidence, cases)


def _other_cases(expected: Mapping[str, Case], cases: Sequence[CaseRecord], name: str) -> list[str]:
    found = {case.id for case in cases}
    faults = []
    if missing := sorted(set(expected) - found):
        faults.append(f"{name}: {len(missing)} case(s) of the suite are missing, first {missing[0]}")
    if invented := sorted(found - set(expected)):
        faults.append(f"{name}: {len(invented)} case(s) are not in the suite, first {invented[0][:40]}")
    for case in cases:
        true = expected.get(case.id)
        if true is not None and (case.hazard, case.subtype, case.stratum, case.factor, case.split) != (
            true.hazard, true.subtype, true.stratum, true.factor, true.split,
        ):  # fmt: skip
            faults.append(f"{name}: case {case.id} is not described as in the suite")
            break
    return faults


def _other_baselines(evidence: Evidence, cases: Sequence[Case]) -> list[str]:
    """Word counting needs no model: the baselines are computed again from the sentences."""
    sparse = score_with_scorer(Bm25([getattr(c, name) for c in cases for name in SENTENCES]), cases)
    expected = [score_with_scorer(TokenJaccard(), cases), sparse]
    expected += [
        hybrid.fuse([case.result() for case in s.cases], sparse)
        for s in evidence.subjects
        if s.identity.kind == "bi-encoder"
    ]
    stored = [system for system in evidence.systems if system.role == "baseline"]
    if len(stored) != len(expected):
        return [f"there are {len(stored)} baselines, and {len(expected)} belong beside these systems"]
    return [
        f"{record.label}: its scores are not those of the suite's sentences"
        for record, found in zip(stored, expected, strict=True)
        if not _equal(record, found)
    ]


def _equal(record: SystemRecord, expected: Sequence[CaseResult]) -> bool:
    wanted = {result.id: result.scores for result in expected}
    for case in record.cases:
        scores = wanted.get(case.id)
        if not isinstance(scores, Mapping):
            if case.scores is not None:
                return False
        elif case.scores is None or any(abs(case.scores[k] - scores[k]) > CLOSE for k in case.scores):
            return False
    return True


def criteria_as_packaged(evidence: Evidence) -> bool:
    """Whether the record was judged by the installed version's own criteria; another institution's differ."""
    content, criteria = Content(), evidence.criteria
    try:
        _, protocol = load_protocol(content, criteria.protocol_name, [])
    except UsageError:
        return False
    hazards = [h for h in load_hazards(content) if h.id in evidence.suite.counts]
    packaged = (protocol, load_fmea(content), load_items(content), hazards, load_published(content))
    stated = (criteria.protocol, criteria.fmea, criteria.items, criteria.hazards, evidence.published)
    return packaged == stated and all(
        sha256_file(content.path(name)) == evidence.content.get(name) for name in CRITERIA
    )
