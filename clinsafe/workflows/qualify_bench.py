"""What the instruments of a qualification share: known answers, the packaged cases, and two audits made once."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from clinsafe.adapters import encoders
from clinsafe.adapters.offline import only_this_machine
from clinsafe.adapters.reference import FakeEncoder, LookupEncoder
from clinsafe.benchmarks import scoring
from clinsafe.benchmarks.scoring import CaseResult
from clinsafe.benchmarks.suite import Case, load_suite
from clinsafe.checklist.qualification import Known, QualificationFile, load_qualification
from clinsafe.content import Content
from clinsafe.protocols import Encoder, PairScorer
from clinsafe.reports import pdf
from clinsafe.reports.evidence import Criteria, Evidence, to_bytes
from clinsafe.reports.qualification import Outcome
from clinsafe.reports.render import html
from clinsafe.workflows import audit
from clinsafe.workflows.prepare import fix_criteria

if TYPE_CHECKING:
    from clinsafe.reports.sign import SigningKey

SMALL = "temporal"
"""The hazard of the small audit whose report is signed and tampered with: the fewest cases."""
SHOWN = 3
"""Faults that a check names; the number of the others is said."""


@dataclass(frozen=True)
class Found:
    """What one instrument saw. `reason` says why where the outcome is not a pass."""

    observed: str
    outcome: Outcome
    reason: str = ""


def judged(observed: str, faults: Sequence[str]) -> Found:
    """A pass where there are no faults; else a fail that names the first of them."""
    if not faults:
        return Found(observed, "pass")
    more = f" (and {len(faults) - SHOWN} more)" if len(faults) > SHOWN else ""
    return Found(observed, "fail", "; ".join(faults[:SHOWN]) + more)


def not_run(reason: str) -> Found:
    """Never a pass."""
    return Found("nothing", "not run", reason)


@dataclass
class Bench:
    """The bench that all instruments work on; whatever is dear is made once, when first asked for.

    Attributes:
        scratch: an empty folder outside any git work tree, thrown away afterwards.
        with_model: whether the reference model may be loaded.
    """

    scratch: Path
    with_model: bool = True

    @cached_property
    def content(self) -> Content:
        """The packaged content; an overlay has no place in a qualification."""
        return Content()

    @cached_property
    def asked(self) -> QualificationFile:
        """Checks and known answers."""
        return load_qualification(self.content)

    @property
    def known(self) -> Known:
        """The known answers."""
        return self.asked.known

    @cached_property
    def cases(self) -> list[Case]:
        """All packaged cases."""
        return load_suite(self.content)

    @cached_property
    def criteria(self) -> Criteria:
        """The default protocol's."""
        return fix_criteria(self.content, None, self.cases)

    def knowing_vectors(self) -> dict[str, Sequence[float]]:
        """Vectors of one that knows every answer: same meaning equal, contradiction orthogonal."""
        vectors: dict[str, Sequence[float]] = {}
        for case in self.cases:
            vectors |= dict.fromkeys((case.a, case.a_same), (1.0, 0.0))
            vectors |= dict.fromkeys((case.b, case.b_same), (0.0, 1.0))
        return vectors

    @cached_property
    def extremes(self) -> audit.AuditResult:
        """One audit of the model that calls everything alike and of the one that knows every answer."""
        knowing = LookupEncoder(dict(self.knowing_vectors()), (1.0, 0.0))
        return audit.run_audit([FakeEncoder("constant"), knowing], out=self._folder())

    @cached_property
    def reference(self) -> Encoder | PairScorer:
        """The reference model, from this machine only."""
        options = encoders.ModelOptions(device="cpu", offline=True)
        with only_this_machine(True):
            return encoders.load_model(self.known.model.alias, options)

    @cached_property
    def reference_results(self) -> list[CaseResult]:
        """Its scores on all cases."""
        with only_this_machine(True):
            return scoring.score(self.reference, self.cases)

    @cached_property
    def small(self) -> audit.AuditResult:
        """A small audit of a fake, on one hazard."""
        return self.small_again()

    def small_again(self) -> audit.AuditResult:
        """The same small audit, made anew."""
        return audit.run_audit("fake:words", hazards=[SMALL], out=self._folder())

    def _folder(self) -> Path:
        """A new one each time: after a fault an audit is tried again, and must not stumble over its own remains."""
        return Path(tempfile.mkdtemp(dir=self.scratch))

    @cached_property
    def document(self) -> bytes:
        """The unsigned PDF of the small audit."""
        if self.small.pdf is not None:
            return self.small.pdf.read_bytes()
        return self.render(self.small.evidence)  # says why it cannot be made

    def render(self, evidence: Evidence, change: Callable[[str], str] = lambda page: page) -> bytes:
        """The PDF of a record; `change` may tamper with its page."""
        page = change(html(evidence, self.content))
        return pdf.render(page, to_bytes(evidence), evidence.created, self.content)

    @cached_property
    def owner(self) -> KeyPair:
        """A key made for this bench, which is trusted in it."""
        return _pair(self.scratch / "owner")

    @cached_property
    def stranger(self) -> KeyPair:
        """Another key, which is not."""
        return _pair(self.scratch / "stranger")


KeyPair: TypeAlias = "tuple[SigningKey, Path]"
"""A signing key and the file of its certificate."""


def _pair(folder: Path) -> KeyPair:
    from clinsafe.reports.keys import load_key, make_development_key

    passphrase = secrets.token_urlsafe(16).encode()
    path = make_development_key(folder, f"qualification {folder.name}", passphrase)
    return load_key(path, passphrase), path.with_suffix(".pem")
