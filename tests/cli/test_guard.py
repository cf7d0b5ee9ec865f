"""``clinsafe guard check``: what a developer, a safety officer and a script see."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from clinsafe.cli.app import app
from tests.cli.test_cli import inside

QUERY = "The patient has a penicillin allergy."
PASSAGES = [
    {"id": "note-1", "text": "Allergies: none. The patient has no penicillin allergy."},
    {"id": "note-2", "text": "Penicillin allergy since childhood."},
    {"id": "note-3", "text": "The wound is dry."},
]


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in PASSAGES))
    return path


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, ["guard", "check", *map(str, arguments)], input=stdin)


def test_a_conflict_is_printed_with_both_spans_its_cue_and_rule_and_holds(notes):
    done = run("--query", QUERY, "--passages", notes)
    assert done.exit_code == 1, done.output
    first, second, third = (done.output.split(f"note-{n}")[1] for n in (1, 2, 3))
    assert first.startswith("  CONFLICT")
    assert "negation, conflict" in first
    marked = [line for line in first.splitlines() if line.startswith(("  query   ", "  passage "))]
    assert len(marked) >= 2
    assert all("[" in line and "]" in line and "penicillin allergy" in line for line in marked[:2])
    assert "rule negation." in first
    assert second.startswith("  no conflict")
    assert third.startswith("  no conflict")
    assert "3 passages: 1 in conflict, 0 not fully checked" in done.output


def test_no_conflict_is_exit_0_and_lines_fit_80_columns(notes):
    done = run("--query", "The wound is dry.", "--passages", notes)
    assert done.exit_code == 0, done.output
    held = run("--query", QUERY, "--passages", notes, "--all")
    assert max(map(len, held.output.splitlines())) <= 80


def test_a_question_is_answered_by_both(notes):
    done = run("--query", "Does the patient have a penicillin allergy?", "--passages", notes)
    assert done.exit_code == 0, done.output


def test_json_holds_spans_that_lie_in_the_texts(notes, tmp_path):
    out = tmp_path / "found.json"
    run("--query", QUERY, "--passages", notes, "--json", out)
    rows = json.loads(out.read_text())
    assert [row["passage"] for row in rows] == ["note-1", "note-2", "note-3"]
    assert [row["conflict"] for row in rows] == [True, False, False]
    for finding in rows[0]["findings"]:
        span = finding["passage_span"]
        assert PASSAGES[0]["text"][span["start"] : span["end"]].strip()
        assert finding["sentence"].endswith(".")


def test_plain_text_and_standard_input(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("\n\n".join(row["text"] for row in PASSAGES))
    done = run("--query", "-", "--passages", path, stdin=QUERY)
    assert done.exit_code == 1
    assert "3 passages: 1 in conflict" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--query", "", "--passages", "NOTES"), "query is empty"),
        (("--query", "x", "--passages", "missing.jsonl"), "no such file"),
        (
            ("--query", "x", "--passages", "NOTES", "--filter", "laterality"),
            "no filter is called 'laterality'",
        ),
        (("--query", "x", "--passages", "BINARY"), "not UTF-8"),
        (("--query", "x", "--passages", "EMPTY"), "empty"),
        (("--query", "x", "--passages", "BROKEN"), "broken.jsonl:2: text"),
        (("--query", "x", "--passages", "NOTES", "--spacy", "xx_none"), "xx_none"),
        (("--query", "x", "--passages", "NOTES", "--json", "no/such/folder/x.json"), "folder is not there"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(notes, tmp_path, arguments, said):
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)))
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "broken.jsonl").write_text('{"text": "fine"}\n{"id": "2"}\n')
    places = {"NOTES": notes, "BINARY": tmp_path / "binary.txt", "EMPTY": tmp_path / "empty.txt",
              "BROKEN": tmp_path / "broken.jsonl"}  # fmt: skip
    done = inside("guard", "check", *(places.get(a, a) for a in arguments), cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_broken_rule_pack_is_told_by_file_line_and_field(notes, tmp_path):
    (tmp_path / "over" / "mitigations").mkdir(parents=True)
    (tmp_path / "over" / "mitigations" / "negation.yaml").write_text("cues: 5\n")
    command = [sys.executable, "-m", "clinsafe", "guard", "check", "--query", "x", "--passages", str(notes)]
    done = subprocess.run([*command, "--content", str(tmp_path / "over")], capture_output=True, text=True)
    assert done.returncode == 2
    assert "negation.yaml:1: " in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "\x00\x01\x02",
        "ألم في الصدر",
        "患者は胸痛を否定",
        "🤕🤕🤕 no 🤒",
        "no " * 5000,
        "a" * 20_000,
        "(" * 20_000,
        "9" * 20_000,
    ],
)
def test_strange_texts_are_read_and_never_a_traceback(tmp_path, text):
    path = tmp_path / "odd.jsonl"
    path.write_text(json.dumps({"text": text}) + "\n")
    done = run("--query", QUERY, "--passages", path)
    assert done.exit_code in (0, 1), done.output
    assert "0 not fully checked" in done.output
