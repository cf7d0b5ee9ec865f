"""Fixtures shared by all tests. Nothing here reads or writes the user's own keys."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import settings

from clinsafe.benchmarks.suite import Case, load_suite
from clinsafe.checklist.regulatory import load_regulatory
from clinsafe.content import Content, packaged_root

# One worker a core: with a thread for each core in each of them, torch would spend its time waiting.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("clinsafe", deadline=None)  # no test may depend on how fast a machine is
settings.load_profile("clinsafe")


LONG = (
    "scale/test_local", "workflows/test_qualify", "attacks/test_attack_table", "cli/test_cli", "reports/test_verify",
    "workflows/test_audit", "cli/test_whole_audit", "reports/test_complete", "workflows/test_several",
    "attacks/test_hostile_files", "workflows/test_qualify_figures", "packaging/test_wheel",
    "workflows/test_qualify_record", "adapters/test_onnx_export", "reports/test_pages", "reports/test_acceptance",
    "reports/test_evidence", "cli/test_paper", "benchmarks/test_suite", "adapters/test_encoders",
    "benchmarks/test_real_text", "reports/test_container", "reports/test_sign_and_check", "reports/test_changes",
    "scale/test_annotate", "scale/test_store", "workflows/test_tiers", "reports/test_mined_reports",
    "cli/test_guard_bench", "reports/test_guard_pages", "workflows/test_audit_guard", "adapters/test_haystack",
    "adapters/test_llamaindex", "adapters/test_langchain", "mitigations/test_nli", "mitigations/test_annotation",
)  # fmt: skip
"""Files that take more than ten seconds, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first: a worker that is given one last would be waited for (pyproject: `--no-loadscope-reorder`)."""
    place = {f"tests/{name}.py": number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(LONG)))


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    for name in ("CLINSAFE_PASSPHRASE", "BI_ENCODER_MODEL", "CLINSAFE_LOG_KEY", "CLINSAFE_LOG_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="session")
def suite() -> list[Case]:
    """All written cases."""
    return load_suite(Content())


@pytest.fixture(scope="session")
def few(suite: list[Case]) -> list[Case]:
    """Three cases of each hazard: enough for every code path."""
    kept: dict[str, list[Case]] = {}
    for case in suite:
        kept.setdefault(case.hazard, [])
        if len(kept[case.hazard]) < 3:
            kept[case.hazard].append(case)
    return [case for group in kept.values() for case in group]


@pytest.fixture
def overlay(tmp_path: Path) -> Callable[..., Path]:
    """Build an overlay: copy one content file, change it, return the overlay's root."""

    def build(name: str, change: Callable[[str], str]) -> Path:
        root = tmp_path / "overlay"
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source = target if target.exists() else packaged_root() / name
        target.write_text(change(source.read_text(encoding="utf-8")), encoding="utf-8")
        return root

    return build


INTERRUPTIBLE = (
    sys.executable, "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
)  # fmt: skip
"""Python, for tests that send Ctrl-C: under nohup, or as a job in the background, SIGINT is ignored by every child."""


def write_small(root: Path, few: list[Case]) -> Path:
    """An overlay for fast whole audits: the suite is the `few` cases, and of the rules only some clauses are listed."""
    folder = root / "benchmarks" / "clinsafeembed"
    folder.mkdir(parents=True)
    for hazard in dict.fromkeys(case.hazard for case in few):
        lines = [c.model_dump_json() for c in few if c.hazard == hazard]
        (folder / f"{hazard}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return write_few_clauses(root)


def write_few_clauses(root: Path) -> Path:
    """An overlay for shorter reports: the packaged suite, and of the rules only some clauses are listed."""
    whole = load_regulatory(Content()).model_dump(mode="json")
    clauses = whole["clauses"][:4]
    used = {part["reference"] for part in [*clauses, *whole["schemes"]]}
    references = [r | {"superseded_by": ""} for r in whole["references"] if r["id"] in used]
    (root / "checklist").mkdir(parents=True)
    text = yaml.safe_dump(whole | {"references": references, "clauses": clauses}, allow_unicode=True)
    (root / "checklist" / "regulatory.yaml").write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def small_suite(few: list[Case], tmp_path: Path) -> Path:
    """`write_small` in a folder of its own."""
    return write_small(tmp_path / "small", few)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run share, and no other run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def drawer(run_folder: Path) -> Iterator[Any]:
    """Report pages from a warm process, kept for all workers; see `tests.drawing`."""
    from tests.drawing import Drawer

    made = Drawer(run_folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_renders(drawer: Any) -> Iterator[None]:
    """Equal input is drawn once a run: that it gives equal bytes is shown elsewhere (test_pages, tests/cli)."""
    from clinsafe.reports import pdf

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "render", drawer.kept)
        yield


@pytest.fixture(scope="session")
def intervals() -> dict[tuple[Any, ...], Any]:
    """Bootstrap intervals that this worker has computed, by their exact input."""
    return {}


@pytest.fixture(scope="module")
def shared_intervals(intervals: dict[tuple[Any, ...], Any], shared_checks: None) -> Iterator[None]:
    """Equal scores are resampled once: that they give equal intervals is shown elsewhere (test_stats, tests/cli)."""
    import numpy as np

    from clinsafe.benchmarks import measure

    def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
        def once(*given: Any) -> Any:
            arrays = [np.asarray(scores, np.float64) for scores in given]
            key = (function.__name__, *((a.shape, a.tobytes()) for a in arrays))
            if key not in intervals:
                intervals[key] = function(*given)
            return intervals[key]

        return once

    with pytest.MonkeyPatch.context() as patch:
        for name in ("auroc", "mean"):
            patch.setattr(measure, name, remembered(getattr(measure, name)))
        yield


@pytest.fixture(scope="session")
def checks() -> dict[bytes, Any]:
    """Verdicts on claims that this worker has judged, by the exact claims; and the software list, under no claim."""
    return {}


@pytest.fixture(scope="module")
def shared_checks(checks: dict[bytes, Any]) -> Iterator[None]:
    """Equal claims are judged once, installed packages listed once: what each says is shown in tests of its own
    (test_arithmetic, test_own_claims, test_soup), and in tests/cli without this."""
    import pickle

    from clinsafe.reports import arithmetic
    from clinsafe.workflows import audit

    judge, collect = arithmetic.check, audit.collect

    def judged(claims: Sequence[Any]) -> Any:
        key = hashlib.sha256(pickle.dumps(claims)).digest()
        if key not in checks:
            checks[key] = judge(claims)
        return list(checks[key])

    def collected() -> Any:
        if b"" not in checks:
            checks[b""] = collect()
        return list(checks[b""])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic, "check", judged)
        patch.setattr(audit, "collect", collected)
        yield


@pytest.fixture(scope="session")
def minilm(run_folder: Path) -> Any:
    """The packaged all-MiniLM-L6-v2, loaded once; the very same call is computed once a run."""
    import numpy as np

    from clinsafe.adapters.sentence_transformers import load
    from tests.drawing import once

    encoder: Any = load("minilm", offline=True)
    compute = encoder.encode_prompted

    def remembered(texts: Sequence[str], prompt: str, /) -> Any:
        name = hashlib.sha256(json.dumps([list(texts), prompt]).encode()).hexdigest()
        return np.load(
            io.BytesIO(once(run_folder / f"minilm-{name}.npy", lambda: saved(texts, prompt)).read_bytes())
        )

    def saved(texts: Sequence[str], prompt: str) -> bytes:
        stream = io.BytesIO()
        np.save(stream, compute(texts, prompt), allow_pickle=False)
        return stream.getvalue()

    encoder.encode_prompted = remembered
    return encoder


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data files; tests that need it are skipped, visibly, without it."""
    folder = os.environ.get("CLINSAFE_DATA")
    if not folder:
        pytest.skip("CLINSAFE_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def signing_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A development key, made once."""
    from clinsafe.reports.keys import load_key, make_development_key

    folder = tmp_path_factory.mktemp("keys")
    path = make_development_key(folder, "Test Author", b"correct horse")
    yield load_key(path, b"correct horse")
    shutil.rmtree(folder, ignore_errors=True)


def read_json(path: Path) -> Any:
    """Parsed file."""
    return json.loads(path.read_text(encoding="utf-8"))
