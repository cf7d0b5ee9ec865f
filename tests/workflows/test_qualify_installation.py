"""Installation qualification: what was changed, is missing or leaks is found."""

from __future__ import annotations

import base64
import hashlib
import socket
from importlib.metadata import PathDistribution

import pytest

from clinsafe.adapters import offline
from clinsafe.content import packaged_root
from clinsafe.reports import pdf
from clinsafe.workflows import qualify_installation as installed
from clinsafe.workflows.qualify import make_checks
from clinsafe.workflows.qualify_bench import Bench


@pytest.fixture
def bench(tmp_path):
    """A fresh one: nothing dear is made before it is asked for."""
    return Bench(tmp_path / "scratch", with_model=False)


def test_this_machine_passes_what_it_must(bench):
    outcomes = {check.id: check.outcome for check in make_checks(bench, only="IQ") if check.level == "always"}
    assert outcomes == {"IQ-01": "pass", "IQ-02": "pass", "IQ-05": "pass", "IQ-06": "pass", "IQ-07": "pass"}


def test_iq01_an_old_python_fails(bench, monkeypatch):
    monkeypatch.setattr(installed.platform, "python_version", lambda: "3.9.1")
    assert installed.platform_check(bench).outcome == "fail"


@pytest.mark.parametrize(("name", "version"), [("weasyprint", None), ("scipy", "1.0.0"), ("torch", "1.13.0")])
def test_iq02_a_package_that_is_missing_or_too_old_fails(bench, monkeypatch, name, version):
    true = installed._version
    monkeypatch.setattr(installed, "_version", lambda n: version if n == name else true(n))
    found = installed.required_packages(bench)
    assert found.outcome == "fail"
    assert name in found.reason


def test_iq03_another_version_is_named_and_a_build_label_is_none(bench, monkeypatch):
    tested = bench.asked.pins
    monkeypatch.setattr(installed, "_version", lambda n: f"{tested[n]}+cpu" if n == "torch" else tested[n])
    assert installed.tested_versions(bench).outcome == "pass"
    monkeypatch.setattr(installed, "_version", lambda n: "0.0.1" if n == "numpy" else None)
    found = installed.tested_versions(bench)
    assert found.outcome == "fail"
    assert "numpy 0.0.1" in found.reason


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small installed package with its RECORD, in the place of the tool."""
    site = tmp_path / "site"
    info = site / "clinsafe-9.dist-info"
    info.mkdir(parents=True)
    rows = []
    for name in ("clinsafe/__init__.py", "clinsafe/stats.py", "clinsafe/_content/checklist/gates.yaml"):
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{path.stat().st_size}")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: clinsafe\nVersion: 9\n")
    (info / "RECORD").write_text("\n".join([*rows, "clinsafe-9.dist-info/RECORD,,"]) + "\n")
    (site / "clinsafe" / "__pycache__").mkdir()
    (site / "clinsafe" / "__pycache__" / "stats.pyc").write_bytes(b"made by Python")
    monkeypatch.setattr(installed, "_own", lambda: PathDistribution(info))
    monkeypatch.setattr(installed, "_package", lambda: site / "clinsafe")
    return site


def test_iq04_an_untouched_package_passes(bench, package):
    assert installed.installation() == "package"
    found = installed.package_unmodified(bench)
    assert (found.outcome, found.reason) == ("pass", "")
    assert found.observed.startswith("3 files")


@pytest.mark.parametrize(
    "touch",
    [
        lambda site: (site / "clinsafe/stats.py").write_text("# another\n"),
        lambda site: (site / "clinsafe/_content/checklist/gates.yaml").write_text("default: none\n"),
        lambda site: (site / "clinsafe/stats.py").unlink(),
        lambda site: (site / "clinsafe/added.py").write_text("import os\n"),
    ],
)
def test_iq04_a_changed_removed_or_added_file_fails(bench, package, touch):
    touch(package)
    assert installed.package_unmodified(bench).outcome == "fail"


def test_iq04_a_list_without_hashes_proves_nothing(bench, package):
    record = package / "clinsafe-9.dist-info" / "RECORD"
    record.write_text("".join(f"{line.split(',')[0]},,\n" for line in record.read_text().splitlines()))
    assert installed.package_unmodified(bench).outcome == "not run"


@pytest.mark.parametrize("kind", ["editable", "source tree"])
def test_iq04_what_is_not_a_package_is_not_compared(bench, package, monkeypatch, kind):
    if kind == "editable":
        (package / "clinsafe-9.dist-info" / "direct_url.json").write_text('{"dir_info": {"editable": true}}')
    else:
        monkeypatch.setattr(installed, "_package", lambda: packaged_root() / "clinsafe")
    assert installed.installation() == kind
    found = installed.package_unmodified(bench)
    assert found.outcome == "not run"
    assert "not compared" in found.reason


def test_the_hash_of_the_code_knows_every_byte_of_it(package):
    before = installed.package_sha256()
    (package / "clinsafe/stats.py").write_text("# another\n")
    assert installed.package_sha256() != before


def test_iq05_a_missing_or_edited_case_fails(bench):
    whole = bench.cases
    for cases in (whole[1:], [case.model_copy(update={"a": case.a + "!"}) for case in whole]):
        broken = Bench(bench.scratch)
        broken.__dict__["cases"] = cases
        assert installed.controlled_content(broken).outcome == "fail"


def test_iq06_no_pango_or_a_damaged_font_fails(bench, monkeypatch, tmp_path):
    true = pdf.renderer_versions()
    monkeypatch.setattr(pdf, "renderer_versions", lambda: {**true, "pango": "not installed"})
    assert installed.renderer_and_fonts(bench).outcome == "fail"
    monkeypatch.setattr(pdf, "renderer_versions", lambda: true)
    (tmp_path / "reports" / "fonts").mkdir(parents=True)
    for name in installed.FONTS:
        (tmp_path / name).write_bytes(b"<html>")
    monkeypatch.setattr(installed, "packaged_root", lambda: tmp_path)
    assert installed.renderer_and_fonts(bench).outcome == "fail"


@pytest.mark.parametrize("dead", [(), ("socket.connect",), ("socket.getaddrinfo", "socket.sendto")])
def test_iq07_a_switch_that_lets_something_out_fails(bench, monkeypatch, dead):
    monkeypatch.setattr(offline, "_CONNECTING", dead)  # what is left of the watch
    for way in ("_connect_outside", "_send_outside"):  # nothing may really leave this machine
        event = "socket.connect" if way == "_connect_outside" else "socket.sendto"
        monkeypatch.setattr(installed, way, lambda e=event: installed_audit(e))
    true = socket.getaddrinfo

    def look_up(host, *rest, **options):
        if host == "name.invalid":
            return installed_audit("socket.getaddrinfo", host)
        return true(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert installed.offline_switch(bench).outcome == "fail"


def installed_audit(event, target=("192.0.2.1", 9)):
    offline._hook(event, (target,) if event.startswith("socket.get") else (None, target))
