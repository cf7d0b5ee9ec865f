"""Is a record complete: its form, its criteria, every case of its suite? And by whose criteria was it judged?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from clinsafe.benchmarks.suite import FOLDER, load_card, load_suite
from clinsafe.checklist.fmea import load_fmea
from clinsafe.checklist.gates import load_protocol
from clinsafe.content import Content, sha256_file
from clinsafe.errors import UsageError
from clinsafe.reports.evidence import CaseRecord, Evidence, criteria_hash, to_bytes


def incomplete(evidence: Evidence, record: bytes) -> list[str]:
    """What is missing from the record: its canonical form, criteria that hash, cases that are not there."""
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
        faults += _missing_cases(evidence, system.cases, system.label)
    return faults


def _missing_cases(evidence: Evidence, cases: Sequence[CaseRecord], name: str) -> list[str]:
    """Compared with the installed suite; a record made with another one cannot be called complete."""
    content = Content()
    hazards = [h for h in evidence.suite.counts if h in load_card(content).counts]
    files = [f"{FOLDER}/{hazard}.jsonl" for hazard in hazards]
    same = all(sha256_file(content.path(f)) == evidence.content.get(f) for f in files)
    if len(hazards) < len(evidence.suite.counts) or not same:
        return []
    expected = {case.id: case for case in load_suite(content, hazards=hazards)}
    missing = sorted(set(expected) - {case.id for case in cases})
    faults = (
        [f"{name}: {len(missing)} case(s) of the suite are missing, first {missing[0]}"] if missing else []
    )
    for case in cases:
        true = expected.get(case.id)
        if true is not None and (case.hazard, case.subtype, case.stratum, case.factor, case.split) != (
            true.hazard, true.subtype, true.stratum, true.factor, true.split,
        ):  # fmt: skip
            faults.append(f"{name}: case {case.id} is not described as in the suite")
            break
    return faults


def criteria_as_packaged(evidence: Evidence) -> bool:
    """Whether the record was judged by the installed version's own criteria; another institution's differ."""
    content = Content()
    names = ("checklist/gates.yaml", "checklist/fmea.yaml", "checklist/items.yaml", "checklist/hazards.yaml")
    try:
        _, protocol = load_protocol(content, evidence.criteria.protocol_name, [])
    except UsageError:
        return False
    same_files = all(sha256_file(content.path(n)) == evidence.content.get(n) for n in names)
    return (
        same_files and protocol == evidence.criteria.protocol and load_fmea(content) == evidence.criteria.fmea
    )


def suite_compared(evidence: Evidence) -> bool:
    """Whether the installed suite is the very one of the record, so that no case can be missing unseen."""
    content = Content()
    files = [f"{FOLDER}/{hazard}.jsonl" for hazard in load_card(content).counts]
    return set(evidence.suite.counts) <= set(load_card(content).counts) and all(
        sha256_file(content.path(f)) == evidence.content.get(f)
        for f in files
        if Path(f).stem in evidence.suite.counts
    )
