"""The SOUP list: complete, equal for equal installations, silent about what it does not know."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.licenses import canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from clinsafe.content import Content, sha256_file
from clinsafe.errors import ContentError, MissingDependency
from clinsafe.reports.evidence import SystemIdentity, SystemRecord
from clinsafe.reports.soup import (
    MODEL_ANOMALIES,
    NOT_LOOKED_AT,
    NOT_STATED,
    collect,
    load_words,
    of_system,
    with_systems,
)

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def listed():
    return {item.name: item for item in collect()}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a made-up package: only its metadata."""

    def add(name, head="", entries=""):
        folder = tmp_path / "site" / f"{name.replace('-', '_')}-1.0.dist-info"
        folder.mkdir(parents=True)
        text = f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0+x\nLicense: MIT\n{head}\n"
        (folder / "METADATA").write_text(text, encoding="utf-8")
        (folder / "entry_points.txt").write_text(entries, encoding="utf-8")
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(tmp_path / "site")
    return add


def dependencies(*groups):
    lines = [line for group in groups for line in group]
    return {canonicalize_name(Requirement(line).name) for line in lines} - {"clinsafe"}


def test_everything_an_audit_needs_is_listed_as_installed_and_developers_tools_are_not(listed):
    for name in ("numpy", "torch", "tokenizers", "weasyprint", "pyhanko", "rfc8785", "pydyf", "markupsafe"):
        assert listed[name].version == version(name), name
    assert not {"clinsafe", "pytest", "hypothesis", "mypy", "ruff", "import-linter", "coverage"} & set(listed)
    assert listed["numpy"].needed_by.count("clinsafe") == 1
    assert "clinsafe" not in listed["pydyf"].needed_by


def test_indirect_packages_say_by_what_they_are_needed(listed):
    assert listed["pydyf"].purpose == "needed by weasyprint"
    many = listed["typing-extensions"]
    assert many.purpose.endswith(f"and {len(many.needed_by) - 3} more")


def test_every_direct_dependency_has_its_words():
    extras = PROJECT["optional-dependencies"]
    direct = dependencies(PROJECT["dependencies"], *(extras[e] for e in extras if e != "dev"))
    assert direct <= set(load_words(Content()).libraries)


def test_licences_that_are_stated_are_spdx(listed):
    words = load_words(Content())
    for name, item in listed.items():
        if item.licence != NOT_STATED:
            assert canonicalize_license_expression(item.licence), name
    for text in (*words.licences.values(), *words.models.values(), *words.spellings.values()):
        assert canonicalize_license_expression(text) == text
    assert sum(item.licence == NOT_STATED for item in listed.values()) < len(listed) / 10


def test_no_address_of_a_person_is_recorded(listed):
    assert [n for n, item in listed.items() if "@" in item.supplier or "://" in item.supplier] == []


def test_interpreter_renderer_and_fonts_are_listed(listed):
    python = listed[sys.implementation.name.replace("cpython", "CPython")]
    assert (python.kind, python.version.split(".")[:2]) == ("runtime", [str(v) for v in sys.version_info[:2]])
    font = listed["DejaVu Sans"]
    assert font.hashes == {
        name: sha256_file(ROOT / "reports/fonts" / name) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
    }


def test_the_fonts_are_of_the_stated_version(listed):
    fonts = pytest.importorskip("fontTools.ttLib")
    for name in listed["DejaVu Sans"].hashes:
        with fonts.TTFont(ROOT / "reports/fonts" / name) as font:
            assert font["name"].getDebugName(5) == f"Version {listed['DejaVu Sans'].version}"


def test_pango_is_left_out_where_it_is_not_installed(monkeypatch):
    from clinsafe.reports import pdf

    monkeypatch.setattr(pdf, "_pango_version", lambda: "not installed")
    assert "Pango" not in [item.name for item in collect()]
    monkeypatch.setattr(pdf, "_pango_version", lambda: "1.2.3")
    assert [item.version for item in collect() if item.name == "Pango"] == ["1.2.3"]


def test_the_order_is_by_name_and_the_same_in_another_process(listed):
    probe = "from clinsafe.reports.soup import collect; print([i.model_dump_json() for i in collect()])"
    other = subprocess.run(
        [sys.executable, "-c", probe],
        env=os.environ | {"PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == str([item.model_dump_json() for item in listed.values()])
    assert [n.lower() for n in listed] == sorted(n.lower() for n in listed)


def test_a_plug_in_is_listed_with_what_it_needs(installed):
    installed("other-encoder", "Requires-Dist: deep\nRequires-Dist: only; extra == 'more'",
              "[clinsafe.encoders]\nother = other:load\n")  # fmt: skip
    installed(
        "deep",
        "Author-email: Ann <ann@example.org>, bob@example.org\nProject-URL: Bug Tracker, https://e.org/i",
    )
    installed("only")
    installed("stranger", "", "[another.group]\nx = y:z\n")
    found = {item.name: item for item in collect()}
    assert found["other-encoder"].purpose == "plug-in of clinsafe.encoders"
    deep = found["deep"]
    assert (deep.purpose, deep.supplier, deep.anomalies) == (
        "needed by other-encoder", "Ann", "https://e.org/i")  # fmt: skip
    assert (deep.version, deep.purl) == ("1.0+x", "pkg:pypi/deep@1.0%2Bx")
    assert not {"only", "stranger"} & set(found)


@pytest.mark.parametrize(
    ("head", "supplier", "licence", "anomalies"),
    [
        ("", NOT_STATED, "MIT", NOT_LOOKED_AT),
        ("Author: UNKNOWN\nMaintainer: me@example.org", NOT_STATED, "MIT", NOT_LOOKED_AT),
        ("Author: A\nMaintainer: B", "B", "MIT", NOT_LOOKED_AT),
        ("Author: The team (https://example.org/team)", "The team", "MIT", NOT_LOOKED_AT),
        ("License-Expression: mit OR apache-2.0", NOT_STATED, "MIT OR Apache-2.0", NOT_LOOKED_AT),
        ("Project-URL: Issues, javascript:alert(1)", NOT_STATED, "MIT", NOT_LOOKED_AT),
        ("Project-URL: Issues, https://example.org/a b", NOT_STATED, "MIT", NOT_LOOKED_AT),
    ],
)
def test_what_a_package_says_of_itself_is_read_with_care(installed, head, supplier, licence, anomalies):
    installed("odd", head, "[clinsafe.scorers]\nx = y:z\n")
    item = next(item for item in collect() if item.name == "odd")
    assert (item.supplier, item.licence, item.anomalies) == (supplier, licence, anomalies)


@pytest.mark.parametrize("classifiers", [["BSD License"], ["MIT License", "ISC License (ISCL)"]])
def test_a_licence_that_may_be_several_is_not_guessed(installed, tmp_path, classifiers):
    head = "\n".join(f"Classifier: License :: OSI Approved :: {text}" for text in classifiers)
    installed("odd", head, "[clinsafe.scorers]\nx = y:z\n")
    file = next((tmp_path / "site").rglob("METADATA"))
    file.write_text(file.read_text().replace("License: MIT\n", "License: see LICENSE\n"))
    assert next(item for item in collect() if item.name == "odd").licence == NOT_STATED


def test_an_overlay_may_say_it_in_other_words_and_its_hash_is_kept(overlay):
    content = Content(
        overlay("checklist/soup.yaml", lambda text: text.replace("prints to the terminal", "talks"))
    )
    assert next(i for i in collect(content) if i.name == "rich").purpose.startswith("talks; a fault ")
    assert set(content.hashes) == {"checklist/soup.yaml"}
    with pytest.raises(ContentError):
        load_words(Content(overlay("checklist/soup.yaml", lambda text: text + "\nextra: x\n")))


def test_without_packaging_the_way_to_install_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "packaging.utils", None)
    with pytest.raises(MissingDependency, match="pip install"):
        collect()


def system(name="BAAI/bge-small-en-v1.5", kind="bi-encoder", role="under test", fake=False, **more):
    settings = {"origin": more.pop("origin", "model hub")}
    identity = SystemIdentity(
        name=name, revision=more.pop("revision", ""), files=more.pop("files", {}), settings=settings, fake=fake,
        trusted_code=False, kind=kind)  # fmt: skip
    return SystemRecord(role=role, label=more.pop("label", name), identity=identity, cases=[], figures={})


def test_a_model_is_soup_whose_anomalies_are_what_was_measured():
    files = {"model.safetensors": "a" * 64, "config.json": "b" * 64}
    item = of_system(system(revision="0" * 40, files=files))
    assert (item.kind, item.supplier, item.anomalies) == ("model", "BAAI", MODEL_ANOMALIES)
    assert item.hashes == files
    assert (item.version, item.purl) == (
        "0" * 40, f"pkg:huggingface/BAAI/bge-small-en-v1.5@{'0' * 40}")  # fmt: skip
    assert item.licence == NOT_STATED
    assert of_system(system("sentence-transformers/all-MiniLM-L6-v2")).licence == "Apache-2.0"


@pytest.mark.parametrize(
    "given",
    [
        {"name": "our-model"},
        {"name": "folder/model.onnx", "origin": "local file"},
        {"name": "a/b/c"},
        {"name": "sentence-transformers/all-MiniLM-L6-v2", "origin": "local folder"},
    ],
)
def test_whose_a_model_is_is_not_guessed(given):
    item = of_system(system(**given))
    assert (item.supplier, item.version, item.licence, item.purl) == (NOT_STATED,) * 3 + ("",)


def test_models_are_added_once_and_baselines_and_doubles_are_not():
    one, two = (
        system(files={"w": "a" * 64}),
        system(files={"w": "b" * 64}, label="BAAI/bge-small-en-v1.5 (2)"),
    )
    lexical = system("BM25", kind="lexical", role="baseline")
    items = with_systems([], [one, two, one, lexical])
    assert [item.hashes["w"][0] for item in items] == ["a", "b"]
    assert with_systems(items, [one, two]) == items


def test_a_fake_says_so():
    assert "fake" in of_system(system("fake:words", fake=True)).purpose
