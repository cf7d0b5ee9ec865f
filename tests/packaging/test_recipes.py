"""The recipes for CI, pre-commit and a container: what they name exists, what they run does what docs/ci.md says."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from clinsafe.content import packaged_root

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
WORKFLOW = ROOT / "examples" / "ci" / "github-actions.yml"
NEGATION = "benchmarks/clinsafeembed/negation.jsonl"


def job() -> dict[str, Any]:
    return yaml.load(WORKFLOW.read_text("utf-8"), Loader=yaml.BaseLoader)["jobs"]["audit"]


def steps() -> dict[str, dict[str, Any]]:
    return {step.get("name", step.get("uses", "")): step for step in job()["steps"]}


def hook() -> dict[str, Any]:
    (found,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    return found


def content(folder: Path, *, broken: bool) -> Path:
    """An overlay with one file of the suite, as it is or with a case that stands there twice."""
    target = folder / "clinsafe-content" / NEGATION
    target.parent.mkdir(parents=True)
    lines = (packaged_root() / NEGATION).read_text("utf-8").splitlines()
    target.write_text("\n".join([*lines, lines[0]] if broken else lines) + "\n", encoding="utf-8")
    return target


def shell(step: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a step as the runner would: bash, stopping at the first failure."""
    script = folder / "step.sh"
    script.write_text(steps()[step]["run"], encoding="utf-8")
    given = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder), "RUNNER_TEMP": str(folder)}
    settings = {"CONTENT": "clinsafe-content", "SIGNING_KEY": "", "CLINSAFE_PASSPHRASE": "", **environment}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    return subprocess.run(
        command, cwd=folder, env=given | settings, capture_output=True, text=True, check=False
    )


# ── GitHub Actions ─────────────────────────────────────────────────────────────────────────────


def test_every_action_is_one_of_githubs_own_at_a_major_version():
    used = [step["uses"] for step in job()["steps"] if "uses" in step]
    assert len(used) == 4
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", one) for one in used)


def test_the_job_may_only_read_and_secrets_reach_one_step_through_its_environment():
    text = WORKFLOW.read_text("utf-8")
    assert yaml.load(text, Loader=yaml.BaseLoader)["permissions"] == {"contents": "read"}
    assert [name for name, step in steps().items() if "secrets." in str(step)] == ["Audit"]
    assert not any("${{" in step.get("run", "") for step in steps().values()), (
        "an expression in a script is an injection"
    )


def test_what_is_kept_is_kept_of_a_held_model_too():
    keep = steps()["Keep report and evidence"]
    assert "cancelled()" in keep["if"]
    assert "evidence.json" in keep["with"]["path"]


STUB = """#!/bin/sh
printf '%s\\n' "$@" > argv
for last do [ "$last" = --key ] && next=1 && continue; [ "${next:-}" ] && cp -p "$last" given && next=; done
exit 1
"""


@pytest.mark.parametrize("overlay", [False, True])
@pytest.mark.parametrize("signing", [False, True])
def test_the_audit_gets_the_overlay_and_the_key_and_a_held_model_fails_the_step(tmp_path, overlay, signing):
    stub = tmp_path / "bin" / "clinsafe"
    stub.parent.mkdir()
    stub.write_text(STUB)
    stub.chmod(0o755)
    if overlay:
        content(tmp_path, broken=False)
    key = base64.b64encode(b"a key").decode() if signing else ""
    path = f"{stub.parent}:{os.environ['PATH']}"
    done = shell("Audit", tmp_path, MODEL="org/model", SIGNING_KEY=key, PATH=path)
    assert done.returncode == 1, done.stderr
    argv = (tmp_path / "argv").read_text().split()
    assert argv[:3] == ["audit", "--model", "org/model"]
    assert ("--content" in argv, "--key" in argv, "--no-sign" in argv) == (overlay, signing, not signing)
    assert (tmp_path / "given").exists() == signing
    if signing:
        assert (tmp_path / "given").read_bytes() == b"a key"
        assert (tmp_path / "given").stat().st_mode & 0o077 == 0
        assert key not in argv


@pytest.mark.slow
def test_the_command_takes_what_the_step_gives_it(tmp_path):
    done = shell("Audit", tmp_path, MODEL="no-such-model-anywhere")
    assert done.returncode == 2
    assert "no-such-model-anywhere" in done.stderr, "it is the model that is wrong, not an option"


@pytest.mark.slow
def test_the_step_stops_a_suite_that_breaks_its_card_and_the_hook_takes_one_that_keeps_it(tmp_path):
    target = content(tmp_path, broken=False)
    command = [*hook()["entry"].split(), *hook()["args"]]
    hooked = subprocess.run(
        [BIN / command[0], *command[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert hooked.returncode == 0, hooked.stdout + hooked.stderr
    lines = target.read_text("utf-8").splitlines()
    target.write_text("\n".join([*lines, lines[0]]) + "\n", encoding="utf-8")
    step = shell("Validate the suite", tmp_path)
    assert step.returncode != 0
    assert "negation" in step.stdout + step.stderr


# ── pre-commit ─────────────────────────────────────────────────────────────────────────────────


def test_the_hook_installs_what_the_command_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert hook()["additional_dependencies"] == project["optional-dependencies"]["suite"]
    assert hook()["entry"].split()[0] in project["scripts"]


def test_the_hook_looks_at_the_suite_and_at_nothing_else():
    pattern = re.compile(hook()["files"])
    folder = ROOT / "benchmarks" / "clinsafeembed"
    suite = [path.relative_to(ROOT).as_posix() for path in folder.iterdir() if path.suffix != ".j2"]
    assert len(suite) > 6
    assert [name for name in suite if not pattern.search(name)] == []
    assert pattern.search(f"clinsafe-content/{NEGATION}")
    assert not any(map(pattern.search, ("README.md", "checklist/gates.yaml", "clinsafe/benchmarks/suite.py")))


@pytest.mark.slow
def test_pre_commit_itself_runs_the_hook(tmp_path):
    """Without installing the package anew: that takes a network and minutes."""
    pytest.importorskip("pre_commit")
    target = content(tmp_path, broken=False)
    local = {**hook(), "language": "system", "entry": f"{BIN / 'clinsafe'} suite validate"}
    local.pop("additional_dependencies")
    config = yaml.safe_dump({"repos": [{"repo": "local", "hooks": [local]}]})
    (tmp_path / ".pre-commit-config.yaml").write_text(config)
    given = os.environ | {"PRE_COMMIT_HOME": str(tmp_path / "home"), "GIT_CONFIG_GLOBAL": os.devnull}

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, check=False)

    checked = run(
        sys.executable, "-m", "pre_commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")
    )
    assert checked.returncode == 0, checked.stdout
    run("git", "init", "-q")
    run("git", "add", "clinsafe-content")
    fine = run(sys.executable, "-m", "pre_commit", "run")
    assert (fine.returncode, "Passed" in fine.stdout) == (0, True), fine.stdout + fine.stderr
    lines = target.read_text("utf-8").splitlines()
    target.write_text("\n".join([*lines, lines[0]]) + "\n", encoding="utf-8")
    run("git", "add", "clinsafe-content")
    assert "Failed" in run(sys.executable, "-m", "pre_commit", "run").stdout
    run("git", "reset", "-q")
    (tmp_path / "other.txt").write_text("x")
    run("git", "add", "other.txt")
    assert "Skipped" in run(sys.executable, "-m", "pre_commit", "run").stdout


# ── the container ──────────────────────────────────────────────────────────────────────────────


def instructions() -> list[tuple[str, str]]:
    """(name, arguments) of each instruction, comments and line ends taken out."""
    lines = [
        line
        for line in (ROOT / "Dockerfile").read_text("utf-8").splitlines()
        if not line.lstrip().startswith("#")
    ]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [
        (name, rest)
        for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())
    ]


def last_stage() -> list[tuple[str, str]]:
    found = instructions()
    return found[max(place for place, (name, _) in enumerate(found) if name == "FROM") :]


def test_the_container_is_not_root_and_runs_the_command():
    stage = last_stage()
    named = dict(stage)
    assert named["USER"] == "10001:10001"
    assert [name for name, _ in stage].index("USER") > max(
        n for n, (name, _) in enumerate(stage) if name == "RUN"
    )
    assert named["ENTRYPOINT"] == '["clinsafe"]'
    assert "org.opencontainers.image.title" in named["LABEL"]
    assert sum(name == "FROM" for name, _ in instructions()) == 2
    assert named["COPY"].startswith("--from=build "), "nothing but what was built reaches the image"


def test_no_secret_and_no_weights_are_named():
    text = (ROOT / "Dockerfile").read_text("utf-8")
    settings = " ".join(rest for name, rest in instructions() if name in ("ENV", "ARG"))
    assert re.search(r"(?i)token|secret|password|passphrase|api_key", settings) is None
    assert "weights.txt" not in text


def test_everything_that_the_image_is_built_from_is_let_through_and_nothing_else():
    ignored = [
        line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line and line[0] != "#"
    ]
    assert ignored[0] == "*"
    let_through = {line[1:] for line in ignored if line.startswith("!")}
    copied = {
        source
        for name, rest in instructions()
        if name == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert copied == let_through
    assert [name for name in copied if not (ROOT / name).exists()] == []
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    assert set(wheel["only-include"]) <= copied
    assert any(fnmatch("deep/signing.p12", line.replace("**/", "*")) for line in ignored)


def test_the_system_libraries_are_those_that_the_report_needs():
    needed = set(re.findall(r"library \S+ (\S+)", (ROOT / "scripts" / "system-packages").read_text("utf-8")))
    installs = {"Dockerfile": str(last_stage()), "workflow": steps()["Install"]["run"]}
    assert needed
    assert {place: needed - set(text.split()) for place, text in installs.items()} == {
        place: set() for place in installs
    }


def test_python_is_pinned_to_what_the_package_takes_and_the_packages_to_the_constraints():
    (version,) = (rest for name, rest in instructions() if name == "ARG" and rest.startswith("PYTHON="))
    assert re.fullmatch(r"PYTHON=3\.1[1-9]-slim-[a-z]+", version)
    installs = [
        part
        for name, rest in instructions()
        if name == "RUN"
        for part in rest.split("&&")
        if "pip install" in part
    ]
    assert len(installs) == 2
    assert all("-c requirements/constraints.txt" in one for one in installs)
