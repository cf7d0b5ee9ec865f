"""The arithmetic check on the published figures and on our own (decision D7), as it stands in the evidence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from clinsafe.benchmarks.arithmetic import check, own_claims
from clinsafe.benchmarks.claims import Ratings
from clinsafe.benchmarks.published import Published, published_claims
from clinsafe.reports.assess import Assessment, figures_of
from clinsafe.reports.evidence import Criteria, SystemRecord, canonical


def own_arithmetic(
    records: Sequence[SystemRecord],
    assessments: Sequence[Assessment],
    criteria: Criteria,
    published: Published,
) -> dict[str, Any]:
    """Every published claim with its verdict, and the faults among the claims that this report makes about itself."""
    rows = [
        Ratings(mode.hazard, mode.published.s, mode.published.o, mode.published.d, mode.published.rpn)
        for mode in criteria.fmea.failure_modes
    ]
    said = check(published_claims(_settled(published), rows))
    ours = {assessment.label: assessment for assessment in assessments}
    checked, faults = 0, []
    for record in records:
        assessment = ours.get(record.label)
        ratings = [
            Ratings(row.hazard, row.severity, row.occurrence, row.detection, row.rpn)
            for row in (assessment.fmea if assessment else ())
        ]
        counts = Counter(case.hazard for case in record.cases)
        found = check(own_claims(figures_of(record), counts, ratings))
        checked += len(found)
        faults += [asdict(c) | {"where": f"{record.label}: {c.where}"} for c in found if c.fault]
    return {"published": [asdict(c) for c in said], "own_checked": checked, "own_faults": faults}


def _settled(published: Published) -> Published:
    """With keys in the order of a record: the words of a verdict must not depend on where the claims were read."""
    return Published.model_validate(json.loads(canonical(published.model_dump(mode="json"))))
