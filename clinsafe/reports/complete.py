"""Is a record complete: its form, its criteria, every case of its suite, its baselines? And by whose criteria judged?

What the installed suite and checklist can contradict is a fault; what only another installation could is said. A mined
suite is installed nowhere: who has its file gives it, and the record is held against that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from clinsafe.adapters.lexical import Bm25, TokenJaccard
from clinsafe.adapters.weights import ALIASES
from clinsafe.benchmarks import hybrid
from clinsafe.benchmarks.mined import card_path, load_mined
from clinsafe.benchmarks.published import load_published
from clinsafe.benchmarks.scoring import UNRELATED, CaseResult, partners, score_with_scorer
from clinsafe.benchmarks.suite import FOLDER, SENTENCES, Case, load_card, load_suite
from clinsafe.checklist.fmea import load_fmea
from clinsafe.checklist.gates import FILE as GATES
from clinsafe.checklist.gates import GatesFile, load_protocol
from clinsafe.checklist.hazards import load_hazards
from clinsafe.checklist.items import load_items
from clinsafe.checklist.regulatory import load_regulatory
from clinsafe.checklist.risk import load_risk
from clinsafe.content import Content, sha256_file
from clinsafe.errors import UsageError
from clinsafe.protocols import ModelIdentity
from clinsafe.reports.evidence import CaseRecord, Evidence, SystemRecord, criteria_hash, limits, to_bytes
from clinsafe.reports.suite_record import MinedRecord, SuiteRecord, mined_suite
from clinsafe.version import VERSION

CLOSE, GRAM = 1e-6, 1e-5
MIRRORED = (("a|b", "b|a"), ("a|a_same", "a_same|a"), ("b|b_same", "b_same|b"))
CRITERIA = ("checklist/gates.yaml", "checklist/fmea.yaml", "checklist/risk.yaml", "checklist/items.yaml",
            "checklist/hazards.yaml",
            "benchmarks/published.yaml")  # fmt: skip


def incomplete(evidence: Evidence, record: bytes, mined: Path | None = None) -> list[str]:
    """What is missing from the record, or is not what this installation knows it to be.

    Args:
        evidence: the record.
        record: its bytes.
        mined: the mined suite that it says it was made on, its card beside it; None leaves that uncompared.

    Raises:
        UsageError: `mined` is given for a record of the written suite, or is not there.
        ContentError: it is damaged.
    """
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
    stated = limits(evidence.suite.tier, guarded=evidence.guard is not None)
    if evidence.tool.get("version") == VERSION and evidence.limits != stated:
        faults.append("the limits of the audit are not the ones that this version states")
    faults += _other_content(evidence) + _other_weights(evidence) + _other_packs(evidence)
    if mined is not None:
        return faults + _against_the_mined(evidence, mined)
    return faults + (_against_the_written(evidence) if suite_compared(evidence) else [])


def _other_content(evidence: Evidence) -> list[str]:
    """Values that differ although the record names the very file that is installed here."""
    content, criteria = Content(), evidence.criteria
    protocols = content.yaml(GATES, GatesFile).protocols
    hazards = [h for h in load_hazards(content) if h.id in evidence.suite.counts]
    pairs: list[tuple[str, object, object]] = [
        (GATES, criteria.protocol, protocols.get(criteria.protocol_name, criteria.protocol)),
        ("checklist/fmea.yaml", criteria.fmea, load_fmea(content)),
        ("checklist/risk.yaml", criteria.risk, load_risk(content)),
        ("checklist/items.yaml", criteria.items, load_items(content)),
        ("checklist/hazards.yaml", criteria.hazards, hazards),
        ("benchmarks/published.yaml", evidence.published, load_published(content)),
        ("checklist/regulatory.yaml", evidence.regulatory, load_regulatory(content)),
    ]
    return [
        f"the record names the installed {name}, and says something else than that file"
        for name, stated, installed in pairs
        if evidence.content.get(name) == sha256_file(content.path(name)) and stated != installed
    ]


def _other_weights(evidence: Evidence) -> list[str]:
    """Weights whose hash is known here under another name."""
    known = {alias.sha256: alias.name for alias in ALIASES.values()}
    return [
        f"{system.label}: {file} is the file of {known[digest]}"
        for system in evidence.systems
        for file, digest in system.identity.files.items()
        if known.get(digest, system.identity.name) != system.identity.name
        and system.identity.settings.get("origin") != "local folder"
    ]


def _other_packs(evidence: Evidence) -> list[str]:
    """Rule packs of the guard that are not the content that the record names."""
    packs = {} if evidence.guard is None else evidence.guard.packs
    return [
        f"the guard read another {name} than the record's list of content names"
        for name, digest in packs.items()
        if evidence.content.get(name) != digest
    ]


def suite_compared(evidence: Evidence, mined: Path | None = None) -> bool:
    """Whether the very suite of the record is at hand, so that no case can be missing unseen.

    Args:
        mined: file of a mined suite; None looks at the installed written one.
    """
    said = evidence.suite.mined
    if said is not None:
        return mined is not None and not _other_files(evidence, said, mined)
    content = Content()
    known = load_card(content).counts
    files = [*evidence.suite.files, f"{FOLDER}/suite.yaml"]
    return set(evidence.suite.counts) <= set(known) and all(
        sha256_file(content.path(name)) == evidence.content.get(name) for name in files
    )


def _against_the_written(evidence: Evidence) -> list[str]:
    """Cases, the words about them, and the baselines: all of it follows from the installed suite."""
    content = Content()
    card = load_card(content)
    # a record that claims no hazard at all is held against the whole suite
    cases = load_suite(content, hazards=[h for h in card.counts if h in evidence.suite.counts] or None)
    said = evidence.suite
    alike = (said.title, said.version, said.authorship, said.second_reader, said.clinician_review,
             said.not_covered) == (card.title, card.suite_version, card.authorship, card.second_reader,
                                   card.clinician_review, card.not_covered)  # fmt: skip
    return _against(evidence, cases, alike=alike)


def _against_the_mined(evidence: Evidence, path: Path) -> list[str]:
    """The same for a mined suite: by the hashes of its files, and case by case."""
    said = evidence.suite.mined
    if said is None:
        raise UsageError(
            f"{path}: the record was made on the written suite, not on a mined one; leave --suite out"
        )
    for needed in (path, card_path(path)):
        if not needed.is_file():
            raise UsageError(f"{needed}: no such file; a mined suite and its card lie side by side")
    if other := _other_files(evidence, said, path):
        return other
    card, cases = load_mined(path)
    kept = [case for case in cases if case.hazard in evidence.suite.counts] or cases
    expected: SuiteRecord = mined_suite(card, kept, (said.file, said.card))
    return _against(evidence, kept, alike=evidence.suite == expected)


def _other_files(evidence: Evidence, said: MinedRecord, path: Path) -> list[str]:
    """A mined suite's file or card that is not the one of the record."""
    return [
        f"{file.name} is not the {what} of the record (SHA-256)"
        for file, name, what in ((path, said.file, "suite"), (card_path(path), said.card, "card"))
        if not file.is_file() or sha256_file(file) != evidence.content.get(name)
    ]


def _against(evidence: Evidence, cases: Sequence[Case], *, alike: bool) -> list[str]:
    """Cases and baselines; `alike`: the words about the suite are those of its card."""
    faults: list[str] = []
    by_id, others = {case.id: case for case in cases}, partners(cases)
    for system in evidence.systems:
        faults += _other_cases(by_id, system.cases, system.label)
        faults += _impossible(system, others)
    if not alike:
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
    jaccard, bm25 = TokenJaccard(), Bm25([getattr(c, name) for c in cases for name in SENTENCES])
    sparse = score_with_scorer(bm25, cases)
    expected = [(jaccard.identity, score_with_scorer(jaccard, cases)), (bm25.identity, sparse)]
    expected += [
        (
            hybrid.identity(_identity(s), bm25.identity),
            hybrid.fuse([case.result() for case in s.cases], sparse),
        )
        for s in evidence.subjects
        if s.identity.kind == "bi-encoder"
    ]
    stored = [system for system in evidence.systems if system.role == "baseline"]
    if len(stored) != len(expected):
        return [f"there are {len(stored)} baselines, and {len(expected)} belong beside these systems"]
    faults = []
    for record, (identity, found) in zip(stored, expected, strict=True):
        if (record.identity.name, record.identity.kind) != (identity.name, identity.kind):
            faults.append(f"{record.label}: the baseline in this place is {identity.name}")
        elif not _equal(record, found):
            faults.append(f"{record.label}: its scores are not those of the suite's sentences")
    return faults


def _identity(record: SystemRecord) -> ModelIdentity:
    said = record.identity
    return ModelIdentity(
        said.name, said.revision, said.files, said.settings, said.fake, said.trusted_code, said.kind
    )


def _equal(record: SystemRecord, expected: Sequence[CaseResult]) -> bool:
    wanted = {result.id: result.scores for result in expected}
    for case in record.cases:
        scores = wanted.get(case.id)
        if not isinstance(scores, Mapping) or case.scores is None:
            if isinstance(scores, Mapping) or case.scores is not None:
                return False
        elif set(case.scores) != set(scores) or any(abs(case.scores[k] - scores[k]) > CLOSE for k in scores):
            return False
    return True


def _impossible(record: SystemRecord, others: Mapping[str, Case]) -> list[str]:
    """Scores that no system of this kind can give: one without a mirror image, or without its unrelated pair."""
    scores = {case.id: case.scores for case in record.cases}
    for case, other in others.items():
        if (
            scores.get(case) is not None
            and UNRELATED not in (scores[case] or {})
            and scores.get(other.id) is not None
        ):
            return [f"{record.label}: case {case} lacks its unrelated pair, though both texts were measured"]
    symmetric = (
        record.identity.kind == "bi-encoder" and record.identity.settings.get("prompts", "none") == "none"
    )
    for case_id, found in scores.items() if symmetric else ():
        if found is not None and any(abs(found[x] - found[y]) > CLOSE for x, y in MIRRORED):
            return [f"{record.label}: case {case_id} has another similarity of a to b than of b to a"]
        if found is not None and float(np.linalg.eigvalsh(_gram(found)).min()) < -GRAM:
            return [f"{record.label}: no four vectors have the similarities of case {case_id}"]
    return []


def _gram(scores: Mapping[str, float]) -> np.ndarray:
    """The 4 x 4 matrix of cosines of a, b, a_same and b_same; it has no negative eigenvalue if they are cosines."""
    gram = np.eye(len(SENTENCES))
    for i, x in enumerate(SENTENCES):
        for j, y in enumerate(SENTENCES):
            if i != j:
                gram[i, j] = scores.get(f"{x}|{y}", scores.get(f"{y}|{x}", 0.0))
    return (gram + gram.T) / 2


def criteria_as_packaged(evidence: Evidence) -> bool:
    """Whether the record was judged by the installed version's own criteria; another institution's differ."""
    content, criteria = Content(), evidence.criteria
    try:
        _, protocol = load_protocol(content, criteria.protocol_name, [])
    except UsageError:
        return False
    hazards = [h for h in load_hazards(content) if h.id in evidence.suite.counts]
    packaged = (
        protocol,
        load_fmea(content),
        load_risk(content),
        load_items(content),
        hazards,
        load_published(content),
    )
    stated = (
        criteria.protocol,
        criteria.fmea,
        criteria.risk,
        criteria.items,
        criteria.hazards,
        evidence.published,
    )
    return packaged == stated and all(
        sha256_file(content.path(name)) == evidence.content.get(name) for name in CRITERIA
    )
