"""``guard answer`` and ``guard policy`` as a stranger uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from clinsafe.cli.app import app
from clinsafe.content import packaged_root
from clinsafe.errors import ClinsafeError

ROWS = [
    {"id": "note-1", "text": "The patient has no penicillin allergy.", "source": "ward"},
    {"id": "note-2", "text": "Known allergy to penicillin, with anaphylaxis in 2010.", "source": "letter"},
    {"id": "note-3", "text": "The wound was dressed."},
]
QUESTION = "Does the patient have a penicillin allergy?"


@pytest.fixture
def passages(tmp_path: Path) -> Path:
    path = tmp_path / "passages.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return path


def run(*arguments: object, code: int | None = None) -> str:
    result = CliRunner().invoke(app, ["guard", *map(str, arguments)])
    if code is not None:
        assert result.exit_code == code, result.output
    if isinstance(result.exception, ClinsafeError):
        raise result.exception
    return result.output


def test_stances_disagreement_and_the_call_for_a_person(passages: Path, tmp_path: Path) -> None:
    out = tmp_path / "answer.json"
    said = run("answer", "--query", QUESTION, "--passages", passages, "--json", out, code=1)
    assert "note-1  escalate  (denies)" in said
    assert "note-2  escalate  (affirms)" in said
    assert "note-3  keep  (silent)" in said
    assert "note-1 and note-2" in said
    assert "A PERSON MUST LOOK" in said
    assert all(len(line) <= 80 for line in said.splitlines())
    assert [row["rank"] for row in json.loads(out.read_text())["passages"]] == [1, 2, 3]


def test_nothing_found_is_exit_0(tmp_path: Path) -> None:
    alone = tmp_path / "p.jsonl"
    alone.write_text(json.dumps(ROWS[1]))
    assert "nothing was found" in run("answer", "--query", QUESTION, "--passages", alone, code=0)


def test_the_prompt_holds_the_flag_and_the_words(passages: Path) -> None:
    text = run("answer", "--query", QUESTION, "--passages", passages, "--prompt", code=1)
    assert "FLAGGED" in text
    assert "no penicillin allergy [denied]" in text


def test_bad_input_is_told_in_one_line(passages: Path, tmp_path: Path) -> None:
    own = tmp_path / "soft.yaml"
    text = (packaged_root() / "mitigations/policies/default.yaml").read_text()
    own.write_text(text.replace("unchecked: escalate", "unchecked: keep"))
    for arguments, words in (
        (("--policy", own), "neither safe nor wrong"),
        (("--policy", "lenient"), "there are: default, report, strict"),
        (("--calibration", own), "name that model with --nli"),
        (("--query", " "), "the query is empty"),
    ):
        with pytest.raises(ClinsafeError) as error:
            run("answer", "--query", QUESTION, "--passages", passages, *arguments)
        assert words in str(error.value)


def test_policies_are_listed_shown_and_checked(tmp_path: Path) -> None:
    listed = run("policy", code=0)
    assert all(name in listed for name in ("default:", "strict:", "report:"))
    shown = run("policy", "strict", code=0)
    assert "withholds on: superseded" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
