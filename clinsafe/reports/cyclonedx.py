"""The SOUP list as a CycloneDX 1.6 bill of materials, for the tools that look for known vulnerabilities.

Equal evidence gives equal bytes: the serial number comes from the hash of the evidence, the time is the record's.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clinsafe.errors import MissingDependency, ReportError
from clinsafe.reports.soup import NOT_STATED, PRODUCT, SoupItem

if TYPE_CHECKING:
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component

TYPES = {
    "library": "LIBRARY",
    "runtime": "PLATFORM",
    "model": "MACHINE_LEARNING_MODEL",
    "data": "DATA",
    "font": "FILE",
    "tool": "APPLICATION",
}


def to_cyclonedx(evidence_sha256: str, created: str, tool_version: str, items: Iterable[SoupItem]) -> bytes:
    """JSON, UTF-8, indented.

    Args:
        evidence_sha256: hex digest of the evidence that the list belongs to.
        created: ISO 8601 time of the record, with its zone.
        tool_version: version of clinsafe that made the record.
        items: the SOUP list. A model's or font's files become components inside it, with their hashes.

    Raises:
        MissingDependency: `cyclonedx-python-lib` is not installed.
        ReportError: an item holds what the format cannot (a package URL that is none).
    """
    try:
        from cyclonedx.exception import CycloneDxException
        from cyclonedx.output import make_outputter
        from cyclonedx.schema import OutputFormat, SchemaVersion
    except ImportError as error:
        raise MissingDependency(
            "the CycloneDX list", "cyclonedx-python-lib", "pip install 'clinsafe[report]'"
        ) from error
    try:
        bom = _bom(evidence_sha256, datetime.fromisoformat(created), tool_version, list(items))
        text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    except (CycloneDxException, ValueError) as error:
        raise ReportError(f"the SOUP list does not fit CycloneDX: {str(error)[:120]}") from error
    return f"{text}\n".encode()


def _bom(evidence_sha256: str, created: datetime, version: str, items: Sequence[SoupItem]) -> Bom:
    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.dependency import Dependency
    from cyclonedx.model.tool import ToolRepository

    root = _itself(version, PRODUCT)
    components = [
        _component(item, reference) for item, reference in zip(items, _references(items), strict=True)
    ]
    asked: dict[str, list[Dependency]] = {}
    for item, component in zip(items, components, strict=True):
        for parent in item.needed_by or [PRODUCT]:  # a model is needed by the audit that measured it
            asked.setdefault(parent, []).append(Dependency(component.bom_ref))
    dependencies = [Dependency(root.bom_ref, asked.get(PRODUCT, []))]
    for item, component in zip(items, components, strict=True):
        children = asked.get(item.name, []) if item.kind == "library" else []
        dependencies.append(Dependency(component.bom_ref, children))
    return Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"urn:clinsafe:evidence:sha256:{evidence_sha256}"),
        metadata=BomMetaData(
            timestamp=created,
            tools=ToolRepository(components=[_itself(version, f"{PRODUCT}-as-tool")]),
            component=root,
            properties=[Property(name="clinsafe:evidence:sha256", value=evidence_sha256)],
        ),
        components=components,
        dependencies=dependencies,
    )


def _itself(version: str, reference: str) -> Component:
    from cyclonedx.model.component import Component, ComponentType

    return Component(name=PRODUCT, type=ComponentType.APPLICATION, version=version, bom_ref=reference)


def _references(items: Sequence[SoupItem]) -> list[str]:
    """A name for each item within the document; two that are alike get a number."""
    seen: dict[str, int] = {}
    references = []
    for item in items:
        reference = f"{item.kind}/{item.name}@{item.version}"
        seen[reference] = seen.get(reference, 0) + 1
        references.append(reference if seen[reference] == 1 else f"{reference}#{seen[reference]}")
    return references


def _component(item: SoupItem, reference: str) -> Component:
    from cyclonedx.model import ExternalReference, ExternalReferenceType, Property, XsUri
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.contact import OrganizationalEntity
    from packageurl import PackageURL

    references = []
    if re.fullmatch(r"https?://[!-~]+", item.anomalies):
        url = XsUri(item.anomalies)
        references.append(ExternalReference(type=ExternalReferenceType.ISSUE_TRACKER, url=url))
    return Component(
        name=item.name,
        type=ComponentType[TYPES[item.kind]],
        bom_ref=reference,
        version=None if item.version == NOT_STATED else item.version,
        supplier=None if item.supplier == NOT_STATED else OrganizationalEntity(name=item.supplier),
        licenses=_licences(item.licence),
        purl=PackageURL.from_string(item.purl) if item.purl else None,
        description=item.purpose,
        external_references=references,
        properties=[Property(name="clinsafe:anomalies", value=item.anomalies)],
        components=[_file(reference, name, digest) for name, digest in item.hashes.items()],
    )


def _file(reference: str, name: str, digest: str) -> Component:
    from cyclonedx.model import HashAlgorithm, HashType, Property
    from cyclonedx.model.component import Component, ComponentType

    # A plug-in may name its files by something else than a SHA-256: kept, but not passed off as one.
    is_hash = re.fullmatch(r"[0-9a-f]{64}", digest) is not None
    return Component(
        name=name,
        type=ComponentType.FILE,
        bom_ref=f"{reference}/{name}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if is_hash else [],
        properties=[] if is_hash else [Property(name="clinsafe:identified-by", value=digest)],
    )


def _licences(licence: str) -> list[Any]:
    from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
    from cyclonedx.spdx import fixup_id, is_expression

    if licence == NOT_STATED:
        return []
    if known := fixup_id(licence):
        return [DisjunctiveLicense(id=known)]
    return [LicenseExpression(licence) if is_expression(licence) else DisjunctiveLicense(name=licence)]
