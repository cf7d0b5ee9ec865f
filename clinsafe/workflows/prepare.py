"""What an audit fixes before it measures: criteria, identity, environment. Whatever is wrong is said here."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from clinsafe.benchmarks.mined import card_path, load_mined
from clinsafe.benchmarks.suite import FOLDER, SENTENCES, Case, SuiteCard, by_hazard, load_card, load_suite
from clinsafe.checklist.answers import Answers, load_answers
from clinsafe.checklist.fmea import load_fmea
from clinsafe.checklist.gates import Gate, load_protocol
from clinsafe.checklist.hazards import load_hazards
from clinsafe.checklist.items import load_items
from clinsafe.checklist.regulatory import Regulatory, load_regulatory
from clinsafe.checklist.risk import load_risk
from clinsafe.content import Content, packaged_root, sha256_file
from clinsafe.errors import UsageError
from clinsafe.protocols import Encoder, PairScorer
from clinsafe.reports import pdf
from clinsafe.reports.changes import comparable
from clinsafe.reports.declaration import OTHER_SCHEME, Declaration
from clinsafe.reports.evidence import (
    Criteria,
    PreviousAudit,
    SystemIdentity,
    canonical,
    criteria_hash,
    load,
    sha256,
    to_bytes,
)
from clinsafe.reports.suite_record import MINED, SuiteRecord, content_names, mined_suite
from clinsafe.version import VERSION


@dataclass(frozen=True)
class Fixed:
    """All that is decided before the first text is encoded."""

    content: Content
    cases: Sequence[Case]
    criteria: Criteria
    suite: SuiteRecord
    regulatory: Regulatory
    answers: Answers | None
    previous: PreviousAudit | None


def fix(
    content: Content,
    protocol: str | None,
    hazards: Sequence[str] | None,
    gates: Sequence[Gate],
    answers: Path | None,
    previous: Path | None,
    mined: Path | None = None,
) -> Fixed:
    """Read and check everything that an audit rests on; whatever is wrong is said before a model is loaded.

    Args:
        mined: file of a mined suite; None takes the written one. An audit is of one tier.
    """
    if mined is None:
        cases = load_suite(content, hazards=hazards)
        suite = suite_record(load_card(content), cases, content)
    else:
        suite, cases = _mined(content, mined, hazards)
    criteria = fix_criteria(content, protocol, cases, gates)
    return Fixed(
        content=content,
        cases=cases,
        criteria=criteria,
        suite=suite,
        regulatory=load_regulatory(content),
        answers=None if answers is None else load_answers(content, answers, criteria.items),
        previous=None if previous is None else _previous(previous, criteria, suite, content),
    )


def _mined(content: Content, path: Path, hazards: Sequence[str] | None) -> tuple[SuiteRecord, list[Case]]:
    """A mined suite; its file and card are hashed like all other content."""
    if hazards is not None and (isinstance(hazards, str) or not hazards):
        raise UsageError(f"hazards: got {hazards!r}; give a list of hazards, or None for all of them")
    card, cases = load_mined(path, hazards=hazards)
    names = content_names(path)
    for name, file in zip(names, (path, card_path(path)), strict=True):
        content.hashes[name] = sha256_file(file)
    record = mined_suite(card, cases, names)
    try:
        canonical(record.model_dump(mode="json"))
    except ValueError as error:  # an integer beyond 2**53, a lone surrogate
        raise UsageError(
            f"{card_path(path)}: holds a value that cannot be recorded: {str(error)[:80]}"
        ) from error
    return record, cases


def refuse_unfit(systems: Sequence[object], declaration: Declaration) -> None:
    """Everything that would only fail when the record is written is refused before the first text is encoded."""
    for system in systems:
        if isinstance(system, type) or not isinstance(system, Encoder | PairScorer):
            raise UsageError(
                f"{system!r:.80} is no model: it needs `encode(texts)` or `score(pairs)`, and `identity` "
                "(a ModelIdentity)"
            )
        try:
            record = SystemIdentity.of(system.identity)
            canonical(record.model_dump(mode="json"))
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            name = ".".join(str(step) for step in fault["loc"])
            raise UsageError(
                f"the model's identity: {name}: {fault['msg']}, got {fault['input']!r:.60}"
            ) from error
        except (AttributeError, TypeError, ValueError) as error:
            raise UsageError(
                f"the model's identity is no ModelIdentity of plain text: {str(error)[:120]}"
            ) from error
    for name, value in declaration.model_dump(mode="python").items():
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"{name} must be text in UTF-8, got {value!r:.60}") from error


def fix_criteria(
    content: Content, protocol: str | None, cases: Sequence[Case], gates: Sequence[Gate] = ()
) -> Criteria:
    """Everything that will decide about these cases; raises UsageError where a hazard is not provided for."""
    present = by_hazard(cases)
    hazards = [h for h in load_hazards(content) if h.id in present]
    if undeclared := set(present) - {h.id for h in hazards}:
        path = content.path("checklist/hazards.yaml")
        raise UsageError(f"{path}: hazard {', '.join(sorted(undeclared))} of the suite is not declared")
    name, chosen = load_protocol(content, protocol, [h.id for h in hazards])
    if unknown := set(chosen.thresholds) - {h.id for h in load_hazards(content)}:
        raise UsageError(
            f"protocol {name!r}: {', '.join(sorted(unknown))} is no hazard of checklist/hazards.yaml"
        )
    if gates:
        name = f"{name}-own-gates"
        title = f"{chosen.title}, with gates of the institution's own"
        chosen = chosen.model_copy(update={"gates": list(gates), "title": title})
    fmea = load_fmea(content)
    if unrated := {h.id for h in hazards} - {mode.hazard for mode in fmea.failure_modes}:
        path = content.path("checklist/fmea.yaml")
        raise UsageError(f"{path}: no failure mode rates the severity of {', '.join(sorted(unrated))}")
    criteria = Criteria(
        protocol_name=name,
        protocol=chosen,
        hazards=hazards,
        fmea=fmea,
        risk=load_risk(content, [h.id for h in hazards]),
        items=load_items(content),
    )
    try:
        criteria_hash(criteria)
    except ValueError as error:  # an integer beyond 2**53, a lone surrogate
        raise UsageError(f"the checklist holds a value that cannot be recorded: {str(error)[:80]}") from error
    return criteria


def check_declaration(declaration: Declaration, regulatory: Regulatory, hazards: Sequence[str]) -> None:
    """Refuse a declared class that its scheme does not have, and a disposition of no hazard."""
    schemes = {scheme.id: scheme.values for scheme in regulatory.schemes}
    for said in declaration.classes:
        if said.scheme == OTHER_SCHEME:
            continue
        if said.scheme not in schemes:
            known = ", ".join([*schemes, OTHER_SCHEME])
            raise UsageError(f"declared class: {said.scheme!r} is no scheme; there are: {known}")
        if said.value not in schemes[said.scheme]:
            known = ", ".join(schemes[said.scheme])
            raise UsageError(f"declared class: {said.scheme} has no value {said.value!r}; there are: {known}")
    for decided in declaration.dispositions:
        if decided.hazard not in hazards:
            raise UsageError(
                f"disposition: {decided.hazard!r} is no hazard of this run; there are: {', '.join(hazards)}"
            )


@dataclass(frozen=True)
class _Now:
    """What `comparable` reads of an audit that has not run yet."""

    suite: SuiteRecord
    content: dict[str, str]
    criteria: Criteria


def _previous(path: Path, criteria: Criteria, suite: SuiteRecord, content: Content) -> PreviousAudit:
    """What is kept of an earlier audit, so that the change since then can be derived from the new record alone."""
    record = load(path)
    kept = PreviousAudit(
        created=record.created,
        evidence_sha256=sha256(to_bytes(record)),
        tool_version=record.tool.get("version", "not stated"),
        suite=record.suite,
        content={
            name: digest for name, digest in record.content.items() if name.startswith(("benchmarks/", MINED))
        },
        criteria=record.criteria,
        criteria_sha256=record.criteria_sha256,
        systems=[system.model_copy(update={"figures": {}}) for system in record.subjects],
    )
    try:
        comparable(kept, _Now(suite, content.hashes, criteria))
    except UsageError as error:
        raise UsageError(
            f"{path}: cannot be compared with this audit (A is the earlier one): {error}"
        ) from None
    return kept


def suite_record(card: SuiteCard, cases: Sequence[Case], content: Content) -> SuiteRecord:
    """What is known about the cases; what the packaged card says does not hold for cases of an overlay."""
    files = [f"{FOLDER}/{hazard}.jsonl" for hazard in by_hazard(cases)]
    said = {
        "title": card.title,
        "authorship": card.authorship,
        "second_reader": card.second_reader,
        "clinician_review": card.clinician_review,
    }
    if any(sha256_file(content.path(f)) != sha256_file(packaged_root() / f) for f in files):
        said = dict.fromkeys(said, "not known: an overlay.")
        said["title"] = "cases of an overlay, not the packaged suite"
    return SuiteRecord(
        **said,
        version=card.suite_version,
        tier="written",
        counts={hazard: len(group) for hazard, group in by_hazard(cases).items()},
        not_covered=card.not_covered,
    )


def fingerprint(systems: Sequence[Encoder | PairScorer], criteria: Criteria, cases: Sequence[Case]) -> str:
    """Equal for runs that may share what they computed: the same models, criteria, sentences and version."""
    parts = [criteria_hash(criteria), VERSION]
    for identity in (system.identity for system in systems):
        parts += [identity.name, identity.revision, repr(sorted(identity.files.items())),
                  repr(sorted(identity.settings.items()))]  # fmt: skip
    parts += [f"{case.id}\0{getattr(case, name)}" for case in cases for name in SENTENCES]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def environment() -> dict[str, str]:
    """Versions that decide whether figures and pages can be made again: those printed, and those of the renderer."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    for name in ("numpy", "scipy", "torch", "transformers", "tokenizers", "sentence-transformers", "pydantic",
                 "rapidfuzz", "rfc8785", "pyhanko", "cryptography", "onnxruntime", "bm25s", "httpx2"):  # fmt: skip
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | pdf.renderer_versions()
