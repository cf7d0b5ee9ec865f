"""What the judge's word is worth in a record: decided anew from the record each time it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from clinsafe.checklist.hazards import load_hazards
from clinsafe.content import Content, sha256_file
from clinsafe.rag.auditing.evidence import standing_in
from clinsafe.rag.auditing.record import JudgeAudit, JudgeIdentity
from clinsafe.rag.judging.needs import METRICS
from clinsafe.rag.judging.rubrics import FOLDER
from clinsafe.rag.standing import NOT_AUDITED, AnyStanding, Declared
from clinsafe.rag.values import ItemRecord
from clinsafe.reports.evidence import SystemIdentity
from clinsafe.reports.rag_record import JudgeRecord, RagEvidence

ADHERENCE = "adherence"
RECORDED = "recorded"
HAZARDS = "checklist/hazards.yaml"


def standing_of(judge: JudgeRecord | None, items: Iterable[ItemRecord]) -> AnyStanding:
    """The standing by which one system's figures are made.

    Args:
        judge: of the record.
        items: of the system. Human readers graded as many answers as items have an adherence value.
    """
    if judge is None:
        return NOT_AUDITED
    return standing_by(judge.declared, judge.audit, items)


def standing_by(declared: str, audit: JudgeAudit | None, items: Iterable[ItemRecord]) -> AnyStanding:
    """The same from what a record will hold; see `JudgeRecord`."""
    if declared:
        return Declared(declared, sum(ADHERENCE in item.values for item in items))
    return NOT_AUDITED if audit is None else standing_in(audit)


def audited_as(identity: SystemIdentity, threshold: float) -> JudgeIdentity:
    """A judge as an audit of its adherence names it; rubrics of other metrics are left out."""
    other = {f"{FOLDER}/{name}.yaml" for name in METRICS if name != ADHERENCE}
    files = {name: digest for name, digest in identity.files.items() if name not in other}
    return JudgeIdentity(
        name=identity.name,
        metric=ADHERENCE,
        threshold=threshold,
        rubric_sha256=hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest(),
        settings={**identity.settings, **({"revision": identity.revision} if identity.revision else {})},
    )


def judge_faults(record: RagEvidence, content: Content) -> list[str]:
    """What the record says of its judge and cannot be; one line each."""
    judge, adheres = record.judge, record.settings.thresholds.adherence
    if judge is None:
        return []
    found = []
    if judge.declared and judge.identity.name != RECORDED:
        found.append(
            f"grades by human readers are recorded ones, and the judge is {judge.identity.name[:60]}"
        )
    if judge.declared and judge.audit is not None:
        found.append("grades by human readers and a judge's audit stand in one record")
    audit = judge.audit
    if audit is None:
        return found
    if audit.judge.threshold != adheres:
        found.append(
            f"the judge was audited at a threshold of {audit.judge.threshold:g} and is read at {adheres:g}"
        )
    if audit.judge != audited_as(judge.identity, audit.judge.threshold):
        found.append(f"the audit is of another judge ({audit.judge.name[:60]}) than the one that judged")
    if audit.content.get(HAZARDS) == sha256_file(content.path(HAZARDS)):
        missing = [one.id for one in load_hazards(content) if one.id not in audit.hazards]
        found += [f"the judge's audit leaves out {', '.join(missing)}"] if missing else []
    if audit.fake and not judge.identity.fake:
        found.append("the judge's audit was made with a fake")
    return found
