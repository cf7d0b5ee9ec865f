"""clinsafe.yaml: the template works as it stands, faults are one line, paths hold from any folder."""

from __future__ import annotations

import json

import pytest
import yaml

from clinsafe.adapters.encoders import ModelOptions
from clinsafe.content import sha256_file
from clinsafe.errors import ContentError
from clinsafe.reports import pdf
from clinsafe.workflows.audit import run_audit
from clinsafe.workflows.settings import FILE_NAME, TEMPLATE, load_settings, schema


@pytest.fixture
def written(tmp_path):
    def write(change=lambda text: text):
        path = tmp_path / FILE_NAME
        path.write_text(change(TEMPLATE), encoding="utf-8")
        return path

    return write


def test_the_template_is_valid_and_declares_nothing_by_itself(written):
    plan = load_settings(written())
    (subject,) = plan.subjects(ModelOptions())
    assert subject.model == "minilm"
    assert plan.protocol == "checklist"
    assert plan.guard == ""
    declared = plan.declaration.model_dump()
    assert {str(value) for value in declared.values()} == {"not declared", "not stated", "[]"}


def test_the_schema_accepts_the_template_and_knows_every_field():
    described = json.loads(schema())
    given = yaml.safe_load(TEMPLATE)
    assert set(given) == set(described["properties"])
    assert described["additionalProperties"] is False
    assert described["required"] == ["models"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda t: t.replace("operator:", "operatr:"),
            "declaration.operatr: unknown field",
        ),
        (lambda t: t.replace("protocol: checklist", "protocol: [checklist]"), "protocol"),
        (lambda t: t.replace("  - minilm\n", "").replace("models:", "models: []"), "models"),
        (lambda t: t.replace('policy: ""', "policy: block"), "'none', 'flag', 'demote' or 'withhold'"),
        (
            lambda t: t.replace("classes: []", "classes: [{scheme: mdr-class, value: I, date: 1 May}]"),
            "declaration.classes.0.date",
        ),
        (lambda t: t.replace('checklist_answers: ""', "checklist_answers: no.yaml"), "no.yaml is not there"),
        (lambda t: t.replace('content: ""', "content: nowhere"), "nowhere is not there"),
        (lambda t: t.replace("gates: []", "gates: [{metric: falure, at_most: 0.1, why: x}]"), "falure"),
        (lambda t: t.replace("  - minilm", "  - {model: minilm, prompt: x}"), "prompt"),
    ],
)
def test_a_fault_is_one_line_with_file_and_field(written, change, words):
    with pytest.raises(ContentError, match=words) as caught:
        load_settings(written(change))
    assert FILE_NAME in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_entry_keeps_its_own_options_and_the_command_line_wins(written):
    plan = load_settings(
        written(
            lambda t: t.replace(
                "  - minilm", "  - {model: org/nomic, prompts: nomic, batch_size: 8}\n  - minilm"
            )
        )
    )
    nomic, minilm = plan.subjects(ModelOptions(batch_size=4, offline=True))
    assert (nomic.options.prompts, nomic.options.batch_size, nomic.options.offline) == ("nomic", 4, True)
    assert (minilm.options.prompts, minilm.options.batch_size) == ("auto", 4)
    assert [s.model for s in plan.subjects(ModelOptions(), ["fake:words"])] == ["fake:words"]


def test_a_folder_beside_the_file_is_found_from_anywhere(written, tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    path = written(
        lambda t: (
            t.replace("  - minilm", "  - ./model")
            .replace("protocol: checklist", "protocol: own.yaml")
            .replace('guard: ""', "guard: ward.yaml")
        )
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    plan = load_settings(path)
    assert plan.subjects(ModelOptions())[0].model == str(tmp_path / "model")
    assert plan.protocol == str(tmp_path / "own.yaml")
    assert plan.guard == str(tmp_path / "ward.yaml")
    assert load_settings(written(lambda t: t.replace('guard: ""', "guard: strict"))).guard == "strict"


def test_what_the_file_says_stands_in_the_evidence_with_its_hash(written, small_suite, tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
    path = written(
        lambda t: (
            t.replace('intended_use: ""', "intended_use: ward guidelines")
            .replace("classes: []", "classes: [{scheme: mdr-class, value: IIa, rationale: guides therapy}]")
            .replace("gates: []", "gates: [{metric: pairwise, at_least: 0.9, why: our committee}]")
        )
    )
    plan = load_settings(path)
    result = run_audit(
        "fake:words",
        gates=plan.settings.gates,
        declaration=plan.declaration,
        settings=path,
        overlay=small_suite,
        out=tmp_path / "run",
    )
    evidence = result.evidence
    assert evidence.content[FILE_NAME] == sha256_file(path)
    assert evidence.declaration.intended_use == "ward guidelines"
    assert evidence.declaration.classes[0].value == "IIa"
    assert evidence.declaration.users == "not declared"
    assert {g.metric for g in result.assessment.gates} == {"pairwise"}
    page = result.html.read_text(encoding="utf-8")
    assert "guides therapy" in page
    assert "our committee" in page
