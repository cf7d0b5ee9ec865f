"""The SOUP list as CycloneDX: by the schema, complete, byte for byte the same again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime

import pytest
from packageurl import PackageURL

from clinsafe.errors import MissingDependency, ReportError
from clinsafe.reports.cyclonedx import to_cyclonedx
from clinsafe.reports.soup import NOT_STATED, SoupItem, collect

SHA, CREATED = "ab" * 32, "2026-01-02T03:04:05+01:00"
MODEL = SoupItem(
    name="BAAI/bge-small-en-v1.5",
    version="c" * 40,
    kind="model",
    supplier="BAAI",
    licence="MIT",
    purl=f"pkg:huggingface/BAAI/bge-small-en-v1.5@{'c' * 40}",
    purpose="system under test",
    hashes={"model.safetensors": "a" * 64, "1/model.onnx": "b" * 64},
    anomalies="sections R5 and R7 of this report",
)
ODD = [
    MODEL.model_copy(update={"name": "</i>\u2028 a/b", "version": NOT_STATED, "purl": "", "licence": "as we like"}),
    MODEL.model_copy(update={"supplier": NOT_STATED, "hashes": {"model": "not a hash"}, "licence": NOT_STATED}),
    *(SoupItem(name=f"a {kind}", kind=kind) for kind in ("data", "tool", "font", "runtime", "library")),
]  # fmt: skip


def made(items, sha=SHA, created=CREATED):
    return to_cyclonedx(sha, created, "1.2.3", items)


@pytest.fixture(scope="module")
def items():
    return [*collect(), MODEL, *ODD]


@pytest.fixture(scope="module")
def plain(items):
    return json.loads(made(items))


@pytest.fixture(scope="module")
def validator():
    pytest.importorskip("jsonschema")
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    return JsonStrictValidator(SchemaVersion.V1_6)


@pytest.mark.slow
def test_the_list_of_this_installation_fits_the_schema(validator, items):
    assert validator.validate_str(made(items).decode()) is None


@pytest.mark.parametrize("some", [[], [MODEL, MODEL], [MODEL, *ODD]])
def test_it_fits_the_schema(validator, some):
    assert validator.validate_str(made(some).decode()) is None


def test_the_validator_would_find_a_fault(validator):
    assert validator.validate_str(made([]).decode().replace('"application"', '"no such type"')) is not None


def test_every_item_is_there_once(plain, items):
    assert sorted(c["name"] for c in plain["components"]) == sorted(item.name for item in items)
    assert len(json.loads(made([MODEL, MODEL]))["components"]) == 2
    assert plain["specVersion"] == "1.6"


def test_a_model_is_a_model_with_the_hash_of_every_file(plain):
    model = next(c for c in plain["components"] if c["name"] == MODEL.name and c.get("supplier"))
    assert model["type"] == "machine-learning-model"
    hashes = {file["name"]: file["hashes"] for file in model["components"]}
    assert hashes == {name: [{"alg": "SHA-256", "content": h}] for name, h in MODEL.hashes.items()}
    assert {"name": "clinsafe:anomalies", "value": MODEL.anomalies} in model["properties"]
    assert model["licenses"] == [{"license": {"id": "MIT"}}]


def test_what_is_not_known_is_left_out_and_nothing_is_passed_off_as_a_hash(plain):
    bare = next(c for c in plain["components"] if c["name"] == "a library")
    assert not {"version", "supplier", "licenses", "purl"} & set(bare)
    unknown = next(c for c in plain["components"] if c["name"] == MODEL.name and not c.get("supplier"))
    assert "hashes" not in unknown["components"][0]
    assert unknown["components"][0]["properties"][0]["value"] == "not a hash"


def test_who_needs_what_is_told_as_it_is(plain, items):
    graph = {d["ref"]: d.get("dependsOn", []) for d in plain["dependencies"]}
    names = {c["bom-ref"]: c["name"] for c in plain["components"]}
    assert set(graph) == {"clinsafe", *names}
    for item in items:
        reference = next(ref for ref, name in names.items() if name == item.name)
        for parent in item.needed_by:
            above = "clinsafe" if parent == "clinsafe" else next(r for r, n in names.items() if n == parent)
            assert reference in graph[above], (item.name, parent)


def test_package_urls_are_canonical(items):
    for item in items:
        if item.purl:
            assert PackageURL.from_string(item.purl).to_string() == item.purl


def test_equal_evidence_has_equal_bytes_in_every_process_and_other_evidence_another_number(items):
    probe = (
        "import json, sys; from clinsafe.reports.soup import SoupItem; "
        "from clinsafe.reports.cyclonedx import to_cyclonedx; "
        "items = [SoupItem(**i) for i in json.load(sys.stdin)]; "
        f"sys.stdout.buffer.write(to_cyclonedx({SHA!r}, {CREATED!r}, '1.2.3', items))"
    )
    other = subprocess.run(
        [sys.executable, "-c", probe],
        input=json.dumps([item.model_dump() for item in items]).encode(),
        env=os.environ | {"PYTHONHASHSEED": "3"},
        capture_output=True,
        check=True,
    )
    assert other.stdout == made(items)
    one, two = json.loads(made([MODEL])), json.loads(made([MODEL], sha="cd" * 32))
    assert one["serialNumber"] != two["serialNumber"]
    assert datetime.fromisoformat(one["metadata"]["timestamp"]) == datetime.fromisoformat(CREATED)
    assert one["metadata"]["component"]["version"] == "1.2.3"


@pytest.mark.parametrize("change", [{"purl": "no purl"}, {"purl": "pkg:/x"}])
def test_a_record_that_does_not_fit_is_one_line(change):
    with pytest.raises(ReportError, match="CycloneDX"):
        made([MODEL.model_copy(update=change)])


def test_without_the_library_the_way_to_install_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "cyclonedx.output", None)
    with pytest.raises(MissingDependency, match=r"cyclonedx-python-lib.*pip install"):
        made([MODEL])
