"""Content is read as it is written, and every fault names file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinsafe.checklist.gates import GatesFile
from clinsafe.checklist.hazards import Hazards
from clinsafe.content import Content, Record, load_jsonl, load_yaml, sha256_file
from clinsafe.errors import ContentError, UsageError


class Cues(Record):
    cues: list[str]
    ratio: str
    count: int


def test_yaml_scalars_stay_what_was_written(tmp_path: Path):
    """safe_load would make these False, 70 and 8."""
    file = tmp_path / "cues.yaml"
    file.write_text("cues: [no, off, NO]\nratio: 1:10\ncount: 010\n")
    read = load_yaml(file, Cues)
    assert read.cues == ["no", "off", "NO"]
    assert read.ratio == "1:10"
    assert read.count == 10


@pytest.mark.parametrize(
    ("text", "line", "field", "words"),
    [
        ("cues: [a]\nratio: x\ncount: many\n", 3, "count", "integer"),
        (
            "cues: [a]\nratio: x\ncount: 1\nextra: 1\n",
            4,
            "extra",
            "unknown field; valid at the top level: cues, ratio, count",
        ),
        ("cues:\n - a\n - [b]\nratio: x\ncount: 1\n", 3, "cues.1", "string"),
        ("cues: [a]\nratio: x\n", 1, "count", "required"),
        ("cues: [a]\nratio: x\nratio: y\ncount: 1\n", 3, "ratio", "given twice"),
        ("cues: [a\nratio: x\n", 2, None, "not valid YAML"),
        ("", 1, None, "empty"),
    ],
)
def test_a_yaml_fault_names_file_line_and_field(tmp_path, text, line, field, words):
    file = tmp_path / "cues.yaml"
    file.write_text(text)
    with pytest.raises(ContentError, match=words) as caught:
        load_yaml(file, Cues)
    assert (caught.value.line, caught.value.field) == (line, field)
    assert str(caught.value).startswith(f"{file}:{line}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "field", "words"),
    [
        ('{"cues": ["a"], "ratio": "x", "count": "many"}', "count", "integer"),
        ('{"cues": ["a"], "ratio": "x", "count": 1, "count": 2}', None, "given twice"),
        ('{"cues": ["a"], ', None, "not a JSON object"),
        ("[" * 100_000, None, "not a JSON object"),
        ('["a"]', None, "valid dictionary"),
    ],
)
def test_a_jsonl_fault_names_file_line_and_field(tmp_path, line, field, words):
    file = tmp_path / "cues.jsonl"
    file.write_text('{"cues": ["a"], "ratio": "x", "count": 1}\n\n' + line + "\n")
    with pytest.raises(ContentError, match=words) as caught:
        load_jsonl(file, Cues)
    assert (caught.value.line, caught.value.field) == (3, field)


def test_unusual_line_breaks_inside_a_string_are_not_line_ends(tmp_path):
    file = tmp_path / "cues.jsonl"
    file.write_text('{"cues": ["a\u2028b"], "ratio": "x\u0085", "count": 1}\n', encoding="utf-8")
    assert load_jsonl(file, Cues)[0].cues == ["a\u2028b"]


@pytest.mark.parametrize("name", ["binary.jsonl", "absent.jsonl", "empty.jsonl"])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path, name):
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00\x01")
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(ContentError) as caught:
        load_jsonl(tmp_path / name, Cues)
    assert name in str(caught.value)


def test_the_overlay_wins_file_by_file_and_is_hashed(overlay):
    root = overlay("checklist/hazards.yaml", lambda text: text.replace("Negation blindness", "Polarity"))
    content = Content(root)
    assert content.yaml("checklist/hazards.yaml", Hazards).hazards[0].name == "Polarity"
    content.yaml("checklist/gates.yaml", GatesFile)  # not in the overlay
    assert content.hashes["checklist/hazards.yaml"] == sha256_file(root / "checklist/hazards.yaml")
    assert set(content.hashes) == {"checklist/hazards.yaml", "checklist/gates.yaml"}


def test_what_was_read_is_kept_only_while_the_file_holds_the_same_text(overlay):
    name = "checklist/hazards.yaml"
    root = overlay(name, lambda text: text)
    first = Content(root).yaml(name, Hazards)
    assert Content(root).yaml(name, Hazards) is first
    overlay(name, lambda text: text.replace("Negation blindness", "Polarity"))
    content = Content(root)
    assert content.yaml(name, Hazards).hazards[0].name == "Polarity"
    assert content.hashes[name] == sha256_file(root / name)
    overlay(name, lambda text: text.replace("id: temporal", "id: [temporal]"))
    for _ in range(2):
        with pytest.raises(ContentError, match="id"):
            Content(root).yaml(name, Hazards)
    overlay(name, lambda text: text.replace("id: [temporal]", "id: temporal"))
    assert Content(root).yaml(name, Hazards).hazards[0].name == "Polarity"
    with pytest.raises(ContentError):  # the same text read as something else
        Content(root).yaml(name, GatesFile)


def test_an_overlay_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(UsageError, match="not a directory"):
        Content(tmp_path / "nowhere")


def test_a_misplaced_file_in_an_overlay_is_refused_not_ignored(tmp_path):
    (tmp_path / "gates.yaml").write_text("x: 1")
    with pytest.raises(UsageError, match="not a part of the content tree"):
        Content(tmp_path)
    (tmp_path / "gates.yaml").unlink()
    (tmp_path / "checklist" / "hazards.yaml").mkdir(parents=True)
    with pytest.raises(ContentError, match="is not a file"):
        Content(tmp_path).yaml("checklist/hazards.yaml", Hazards)
