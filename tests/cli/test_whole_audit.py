"""init, checklist, several models, the script's words and compare, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clinsafe.adapters.encoders import ModelOptions
from clinsafe.cli.audit import audit
from clinsafe.errors import UsageError
from clinsafe.workflows.audit import Subject
from tests.cli.test_cli import one_line, run

ONE_HAZARD = """\
title: x
source: y
thresholds: {negation: {cosine: 0.9}}
gates: [{metric: inversion, at_most: 0.1, why: z}]
"""


@pytest.mark.slow
def test_init_then_audit_in_that_folder(small_suite, tmp_path):
    done = run("init", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "exists" in one_line(run("init", ".", cwd=tmp_path))
    path = tmp_path / "clinsafe.yaml"
    text = path.read_text().replace("  - minilm", "  - fake:words\n  - fake:hash")
    path.write_text(
        text.replace('intended_use: ""', "intended_use: ward rounds").replace(
            "protocol: checklist", "protocol: skill"
        )
    )
    assert json.loads((tmp_path / "clinsafe.schema.json").read_text())["title"] == "clinsafe.yaml"
    done = run(
        "audit", "--content", small_suite, "--out", "run", "--no-sign", "--json", "figures.json", cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    # the script passes a model that calls everything unlike everything; the gates, which read paraphrases too, hold it
    assert [line for line in lines if line.startswith("SAFETY VERDICT")] == [
        "SAFETY VERDICT: EMBEDDING MODEL FAILED 9/18 TESTS",
        "SAFETY VERDICT: All tests passed.",
    ]
    assert "fake:hash: 6 hazards held" in lines
    assert any(line.split()[-1:] == ["UNSAFE"] for line in lines)
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert "suite.negation.inversion@model=fake-words" in figures
    assert "suite.negation.failure@model=fake-hash,protocol=skill" in figures
    evidence = json.loads((tmp_path / "run" / "evidence.json").read_text())
    assert evidence["declaration"]["intended_use"] == "ward rounds"
    assert {"clinsafe.yaml"} <= set(evidence["content"])
    page = (tmp_path / "run" / "report.html").read_text()
    assert "ward rounds" in page
    assert "EMBEDDING MODEL FAILED" in page


def test_checklist_init_and_list(tmp_path):
    assert run("checklist", "init", "answers", cwd=tmp_path).returncode == 0
    assert "in_place: not assessed" in (tmp_path / "answers" / "checklist-answers.yaml").read_text()
    done = run("checklist", "list", cwd=tmp_path)
    assert done.returncode == 0
    assert len([line for line in done.stdout.splitlines() if line[:3].strip().isdigit()]) == 10


@pytest.mark.slow
@pytest.mark.slow
def test_an_institutions_own_protocol_and_answers(small_suite, tmp_path):
    (tmp_path / "ward.yaml").write_text(
        "title: Our ward\nsource: risk committee\nthresholds:\n"
        + "".join(
            f"  {h}: {{cosine: 0.6}}\n"
            for h in ("negation", "numerical", "temporal", "entity_swap", "hedging", "quantifier")
        )
        + "gates:\n  - {metric: inversion, at_most: 0.99, why: a test}\n"
    )
    run("checklist", "init", ".", cwd=tmp_path)
    arguments = (
        "audit",
        "-m",
        "fake:words",
        "--content",
        small_suite,
        "--no-sign",
        "--protocol",
        "ward.yaml",
    )
    done = run(*arguments, "--answers", "checklist-answers.yaml", "--out", "run", cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # every gate passes, and a fake is still not released
    assert "0 hazards held" in done.stdout
    assert "protocol ward" in done.stdout
    evidence = json.loads((tmp_path / "run" / "evidence.json").read_text())
    assert {"ward.yaml", "checklist-answers.yaml"} <= set(evidence["content"])
    assert "failure@limit=0.6" in str(evidence["systems"][0]["figures"].keys())


@pytest.mark.parametrize(
    ("files", "arguments", "words"),
    [
        ({}, ("audit",), "clinsafe init"),
        ({}, ("audit", "--config", "nowhere.yaml"), "cannot be read"),
        (
            {"clinsafe.yaml": "models: [minilm]\nmodel: x\n"},
            ("audit",),
            "clinsafe.yaml:2: model: unknown field",
        ),
        (
            {"own.yaml": "title: x\nsorce: y\n"},
            ("audit", "-m", "fake:words", "--protocol", "own.yaml"),
            "own.yaml:",
        ),
        (
            {"own.yaml": ONE_HAZARD},
            ("audit", "-m", "fake:words", "--protocol", "own.yaml"),
            "no threshold for numerical",
        ),
        ({"skill.yaml": "x: 1\n"}, ("audit", "-m", "fake:words", "--protocol", "skill.yaml"), "another name"),
        ({}, ("audit", "-m", "fake:words", "--protocol", "nowhere.yaml"), "cannot be read"),
        ({}, ("audit", "-m", "fake:words", "--answers", "nowhere.yaml"), "cannot be read"),
        ({}, ("audit", "-m", "endpoint:m", "--base-url", "ftp://x"), "http"),
        ({}, ("audit", "-m", "minilm", "--backend", "tpu"), "torch"),
        ({}, ("audit", "-m", "minilm", "--prompts", "klingon"), "nomic"),
        ({"onnx/model.onnx": "x"}, ("audit", "-m", "./onnx"), "damaged ONNX file"),
        ({}, ("compare", "a", "b"), "cannot be read"),
        (
            {"own.yaml": ONE_HAZARD.replace("why: z", "why: ' '")},
            ("audit", "-m", "fake:words", "--protocol", "own.yaml"),
            "own.yaml:4: gates.0.why: ",
        ),
        (
            {"own.yaml": ONE_HAZARD.replace("title: x", "title: ''")},
            ("audit", "-m", "fake:words", "--protocol", "own.yaml"),
            "own.yaml:1: title: ",
        ),
        (
            {"clinsafe.yaml": "models: [minilm]\ngates:\n  - {metric: inversion, at_most: 0.1, why: ''}\n"},
            ("audit",),
            "clinsafe.yaml:3: gates.0.why: ",
        ),
        ({}, ("audit", "-m", "minilm", "--base-url", "http://127.0.0.1:9/v1"), "endpoint:NAME"),
        ({}, ("audit", "-m", "minilm", "--timeout", "5"), "endpoint:NAME"),
        (
            {"clinsafe.yaml": "models: [minilm]\n"},
            ("audit", "--base-url", "http://127.0.0.1:9/v1"),
            "endpoint:NAME",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_2(files, arguments, words, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert words in one_line(run(*arguments, cwd=tmp_path))


@pytest.mark.slow
def test_compare_names_what_changed_and_says_worse(small_suite, tmp_path):
    for name in ("words", "hash"):
        done = run(
            "audit", "-m", f"fake:{name}", "--content", small_suite, "--no-sign", "--out", name, cwd=tmp_path
        )
        assert done.returncode == 1, done.stderr
    same = run("compare", "words", "words/report.pdf", cwd=tmp_path)
    assert same.returncode == 0, same.stderr
    assert "no regression beyond its interval" in same.stdout
    other = run("compare", "words", "hash", "--json", "changes.json", cwd=tmp_path)
    rows = json.loads((tmp_path / "changes.json").read_text())["rows"]
    assert any(row["worse"] or row["better"] for row in rows)
    assert other.returncode == int(any(row["regression"] for row in rows))
    assert max(map(len, other.stdout.splitlines())) <= 80


def test_address_and_time_out_reach_the_endpoint_and_no_other_model(tmp_path, monkeypatch):
    """As with --model, so with a settings file: a model that has no address would refuse one."""
    seen: list[dict[str, ModelOptions]] = []

    def stop(subjects: list[Subject], **_: object) -> None:
        seen.append({str(s.model): s.options for s in subjects})
        raise UsageError("seen")

    monkeypatch.setattr("clinsafe.workflows.audit.run_audit", stop)
    monkeypatch.chdir(tmp_path)
    Path("clinsafe.yaml").write_text(
        "models: [minilm, 'endpoint:a', {model: 'endpoint:b', base_url: 'http://127.0.0.1:2/v1', timeout: 7}]\n"
    )
    names = ["minilm", "endpoint:a", "endpoint:b"]
    for model in (None, names):
        with pytest.raises(UsageError, match="seen"):
            audit(model, base_url="http://127.0.0.1:1/v1", timeout=5.0, offline=True, no_sign=True)
    with pytest.raises(UsageError, match="seen"):
        audit(None, no_sign=True)
    for options in seen[:2]:
        assert list(options) == names
        assert [o.base_url for o in options.values()] == [None, *["http://127.0.0.1:1/v1"] * 2]
        assert [o.timeout for o in options.values()] == [60, 5, 5]
        assert all(o.offline for o in options.values())
    assert [o.base_url for o in seen[2].values()] == [None, None, "http://127.0.0.1:2/v1"]
    assert [o.timeout for o in seen[2].values()] == [60, 60, 7]


@pytest.mark.slow
def test_the_guard_is_shown_beside_the_models_in_eighty_columns(small_suite, tmp_path):
    done = run(
        "audit", "-m", "fake:words", "--guard", "--hazard", "negation", "--content", small_suite, "--out", "run",
        "--no-sign", "--json", "figures.json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert lines[-1].startswith("1 hazard held; report at ")
    assert "fake:words with the guard, policy default, test cases only" in lines
    assert any("D stays 10 where false alarms are not bounded" in line for line in lines)
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert {"guarded.negation.residual@split=test", "guarded.negation.false_alarm@split=test"} <= set(figures)


def test_a_guard_policy_that_is_not_there_is_one_line(tmp_path):
    done = run("audit", "-m", "fake:words", "--guard-policy", "lenient", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "no policy is called 'lenient'" in one_line(done)
