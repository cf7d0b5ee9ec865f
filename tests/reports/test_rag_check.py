"""`report verify` on RAG evaluations: a table of attacks, and checkers with one part broken that must fail it."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from clinsafe.content import Content
from clinsafe.errors import ReportError
from clinsafe.protocols import ModelIdentity
from clinsafe.rag.values import ItemRecord
from clinsafe.reports import pdf, rag_check, record_check
from clinsafe.reports.dsse import attest
from clinsafe.reports.evidence import SystemIdentity, canonical
from clinsafe.reports.pages import Pages
from clinsafe.reports.rag_check import check_rag, differences
from clinsafe.reports.rag_record import JSON_NAME, PDF_NAME, SIDECAR, RagEvidence, from_bytes, to_bytes
from clinsafe.reports.rag_render import html
from clinsafe.reports.rag_standing import audited_as
from clinsafe.reports.rag_statement import PREDICATE, predicate
from clinsafe.reports.sign import sign_pdf
from clinsafe.workflows.rag_audit import identity_of
from clinsafe.workflows.rag_write import OURS, write_rag
from clinsafe.workflows.runs import open_run
from tests.drawing import REAL
from tests.reports.rag_planted import items, record

pytestmark = pytest.mark.usefixtures("shared_renders")
NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def two():
    """Two systems of nine questions each, CUE measured by an audited judge."""
    other = [one.model_copy(update={"slices": {}}) for one in items(9, seed=2)]
    return record({"a": items(9, sliced=False), "b": other}, created=NOW.isoformat(timespec="seconds"))


@pytest.fixture(scope="module")
def small():
    """One system of four questions."""
    return record({"c": items(4, sliced=False)}, by="unaudited", created=NOW.isoformat(timespec="seconds"))


@pytest.fixture(scope="module")
def trust(signing_key, tmp_path_factory):
    path = tmp_path_factory.mktemp("trust") / "trust.der"
    path.write_bytes(signing_key.certificate)
    return [path]


def signed_json(folder, evidence, key, *, data=None, said=None):
    """A record with its sidecar; by default both as `write_rag` makes them."""
    folder.mkdir(exist_ok=True)
    data = to_bytes(evidence) if data is None else data
    (folder / JSON_NAME).write_bytes(data)
    said = said or predicate(evidence)
    envelope = attest({JSON_NAME: data}, key, predicate_type=PREDICATE, predicate=said)
    (folder / SIDECAR).write_text(json.dumps(envelope))
    return folder / JSON_NAME


def edited(data: bytes, change: Callable[[dict], None] = lambda _: None):
    """A record with one thing changed, and its bytes in canonical form."""
    plain = json.loads(data)
    change(plain)
    return RagEvidence.model_validate(plain), canonical(plain)


# ── forged by somebody who has the key: only what follows from the record can tell ─────────────


def value_of_an_item(e):
    e["systems"][0]["items"][0]["values"]["hit"] = 1 - e["systems"][0]["items"][0]["values"]["hit"]


def figure(e):
    e["systems"][0]["figures"]["cue.all.effective_use"]["value"] = 0.999


def bound_of_a_slice(e):
    e["systems"][0]["figures"]["retrieval.all.hit@task=extraction"]["upper"] = 0.2


def figure_left_out(e):
    del e["systems"][0]["figures"]["cue.all.ungrounded_correct"]


def figure_of_nothing(e):
    e["systems"][0]["figures"]["retrieval.all.hit@task=mcq"] = {"not_measured": "x", "n": 0}


def missing_made_a_zero(e):
    figures = e["systems"][0]["figures"]
    figures["generation.all.list_f1"] = figures["generation.all.rouge_l"]


def method_reworded(e):
    for found in e["systems"][0]["figures"].values():
        found["method"] = str(found.get("method", "")).replace("openai:m", "two clinicians")


def item_dropped(e):
    e["systems"][0]["items"].pop()


def items_of_the_other_system(e):
    e["systems"][0]["items"] = e["systems"][1]["items"]


def item_twice(e):
    e["systems"][0]["items"][1]["values"] = e["systems"][0]["items"][0]["values"]


def audit_taken_out(e):
    e["judge"]["audit"] = None


def readers_invented(e):
    e["judge"].update(audit=None, declared="two clinicians")


def audit_made_worse(e):
    for found in e["judge"]["audit"]["figures"].values():
        found.update(upper=1, value=found["value"], low="not estimable", high="not estimable")


def audit_of_another_judge(e):
    e["judge"]["identity"]["settings"]["temperature"] = "1"


def audit_at_another_threshold(e):
    from clinsafe.rag.settings import Settings
    from clinsafe.reports.rag_record import settings_hash

    settings = Settings.model_validate({"thresholds": {"adherence": 0.61}})
    e["settings"] = settings.model_dump(mode="json")
    e["settings_sha256"] = settings_hash(settings)


def settings_changed(e):
    e["settings"]["thresholds"]["cosine"] = 0.5


def more_questions(e):
    e["questions"] = 500


def value_out_of_range(e):
    e["systems"][0]["items"][0]["values"]["rr"] = 7


FORGERIES = (
    value_of_an_item, figure, bound_of_a_slice, figure_left_out, figure_of_nothing, missing_made_a_zero,
    method_reworded, item_dropped, items_of_the_other_system, item_twice, audit_taken_out, readers_invented,
    audit_made_worse, audit_of_another_judge, audit_at_another_threshold, settings_changed, more_questions,
    value_out_of_range,
)  # fmt: skip


@pytest.fixture(scope="module")
def verdicts(two, signing_key, trust, tmp_path_factory):
    """Our verdict on every forgery, each signed anew, and on the untouched record."""
    folder, found, data = tmp_path_factory.mktemp("forged"), {}, to_bytes(two)
    for name, forge in {"untouched": lambda _: None, **{one.__name__: one for one in FORGERIES}}.items():
        evidence, forged = edited(data, forge)
        found[name] = check_rag(signed_json(folder / name, evidence, signing_key, data=forged), trust)
    return found


def mistakes(judge, verdicts):
    return [name for name, verdict in verdicts.items() if judge(verdict) != (name == "untouched")]


@pytest.mark.slow
def test_every_forgery_is_found_and_the_untouched_record_passes(verdicts):
    assert mistakes(lambda verdict: verdict.valid, verdicts) == []
    assert all(verdict.signature.valid for verdict in verdicts.values())
    assert verdicts["untouched"].figures > 300
    assert "DEVELOPMENT" in verdicts["untouched"].verdict


@pytest.mark.slow
@pytest.mark.parametrize("broken", [lambda v: True, lambda v: False, lambda v: v.signature.valid])
def test_a_checker_that_does_not_look_fails_the_table(verdicts, broken):
    assert mistakes(broken, verdicts)


@pytest.mark.parametrize(
    ("part", "unseen"),
    [("differences", figure), ("judge_faults", audit_of_another_judge), ("standing_of", audit_taken_out)],
)
def test_a_checker_without_one_of_its_parts_misses_its_forgery(
    part, unseen, two, signing_key, trust, tmp_path, monkeypatch
):
    evidence, data = edited(to_bytes(two), unseen)
    path = signed_json(tmp_path / "x", evidence, signing_key, data=data)
    true_standing = rag_check.standing_of(two.judge, [])
    silent = {
        "differences": lambda _: [],
        "judge_faults": lambda *_: [],
        "standing_of": lambda *_: true_standing,
    }
    monkeypatch.setattr(rag_check, part, silent[part])
    assert check_rag(path, trust).valid


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forge", "words"),
    [(figure, "cue.all.effective_use.value says 0.999"), (figure_left_out, "is left out"),
     (figure_of_nothing, "does not follow"), (settings_changed, "settings"), (more_questions, "500"),
     (value_out_of_range, "rr is 7"), (audit_of_another_judge, "another judge"), (readers_invented, "recorded"),
     (audit_at_another_threshold, "0.61"), (audit_taken_out, "effective_use")],
)  # fmt: skip
def test_the_reason_is_said_in_one_line(forge, words, verdicts):
    problems = verdicts[forge.__name__].problems
    assert any(words in line for line in problems)
    assert not any("\n" in line for line in problems)


def test_the_last_bits_of_a_float_are_no_forgery(two):
    def nudge(e):
        for found in e["systems"][0]["figures"].values():
            for name in ("value", "low", "high", "lower", "upper"):
                if isinstance(found.get(name), float):
                    found[name] += 1e-12

    assert differences(edited(to_bytes(two), nudge)[0]) == []


# ── changed by somebody without the key ────────────────────────────────────────────────────────


def test_bytes_and_sidecars_that_do_not_belong_are_found(two, small, signing_key, trust, tmp_path):
    good = signed_json(tmp_path / "good", two, signing_key)
    other = signed_json(tmp_path / "other", small, signing_key)
    assert check_rag(good, trust).valid
    assert not check_rag(good, ()).valid  # nobody is trusted
    for name, data in {"space": good.read_bytes() + b" ", "another": other.read_bytes()}.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / JSON_NAME).write_bytes(data)
        (folder / SIDECAR).write_bytes((good.parent / SIDECAR).read_bytes())
        assert not check_rag(folder / JSON_NAME, trust).valid, name
    (good.parent / SIDECAR).unlink()
    assert "not signed" in check_rag(good, trust).verdict


def test_a_signed_record_in_another_form_or_with_another_statement_is_found(
    two, small, signing_key, trust, tmp_path
):
    spaced = json.dumps(json.loads(to_bytes(two)), indent=1).encode()
    path = signed_json(tmp_path / "spaced", two, signing_key, data=spaced)
    assert "canonical" in check_rag(path, trust).verdict
    path = signed_json(tmp_path / "said", two, signing_key, said=predicate(two) | {"cueMeasured": False})
    assert "statement" in check_rag(path, trust).verdict
    assert predicate(two)["cueMeasured"]
    assert not predicate(small)["cueMeasured"]


@pytest.mark.parametrize(
    "data",
    [b"{}", b"{", b"[1]", b'{"record": "clinsafe qualification"}', b'{"record": "clinsafe rag evaluation"}',
     b'{"record": "clinsafe rag evaluation", "schema_version": 1}', b"", b"%PDF-1.7 nothing", b"\xff\xfe"],
)  # fmt: skip
def test_what_is_no_record_is_one_line(data, tmp_path):
    path = tmp_path / JSON_NAME
    path.write_bytes(data)
    with pytest.raises(ReportError) as caught:
        check_rag(path)
    assert "\n" not in str(caught.value)


def test_an_audited_judge_is_the_one_that_the_audit_names():
    who = ModelIdentity(
        "openai:m", "r1", {"benchmarks/rubrics/adherence.yaml": "a" * 64, "benchmarks/rubrics/support.yaml": "b" * 64},
        {"temperature": "0"},
    )  # fmt: skip
    assert audited_as(SystemIdentity.of(who), 0.7) == identity_of(who, "adherence")


# ── files ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def run(tmp_path):
    return open_run(tmp_path / "run", model="rag", fingerprint="f", force=False, now=NOW)


def test_without_pdf_and_key_record_and_html_are_written(small, run):
    done = write_rag(small, Content(), run, None, lambda *_: None, pdf=False)
    assert (done.pdf, done.signed, done.notes) == (None, None, [])
    assert from_bytes(done.record.read_bytes()) == done.evidence == small
    assert "<h1>RAG evaluation: c</h1>" in done.html.read_text()
    assert {path.name for path in done.folder.iterdir()} == {JSON_NAME, "rag.html", "run.json"}


def test_whatever_fails_after_the_measurement_the_record_is_kept(small, run, signing_key, monkeypatch):
    from clinsafe.errors import RenderError

    def dies(*_):
        raise RenderError("the renderer died")

    monkeypatch.setattr(pdf, "render", dies)
    (run.path / PDF_NAME).write_bytes(b"of an earlier run")
    monkeypatch.setattr("clinsafe.reports.rag_render.html", lambda *_: "<p>page</p>")
    done = write_rag(small, Content(), run, signing_key, lambda *_: None)
    assert (done.pdf, done.notes) == (None, ["the renderer died"])
    assert done.signed
    assert not (run.path / PDF_NAME).exists()
    assert (run.path / SIDECAR).is_file()


def test_a_signature_that_fails_keeps_the_record_unsigned(small, run, signing_key, monkeypatch):
    def fails(*_, **__):
        raise ReportError("the key is broken")

    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
    monkeypatch.setattr("clinsafe.reports.sign.sign_pdf", fails)
    monkeypatch.setattr("clinsafe.reports.rag_render.html", lambda *_: "<p>page</p>")
    with pytest.raises(ReportError, match="kept unsigned"):
        write_rag(small, Content(), run, signing_key, lambda *_: None)
    assert (run.path / JSON_NAME).is_file()


def test_pages_that_cannot_be_read_are_not_accepted_unless_the_record_is_enough(
    two, trust, tmp_path, signing_key
):
    facts = SimpleNamespace(
        valid=True, problems=(), development=False, signer="A", signed_at=None, timestamp=None
    )
    unread = Pages("NOT_COMPARABLE", "another renderer", read=False)
    for record_only in (False, True):
        found = rag_check.RagCheck(tmp_path, facts, two, "0", (), unread, 1, record_only)
        assert (found.valid, found.accepted) == (True, record_only)
        assert ("NOT ACCEPTED" in found.verdict) != record_only
    different = rag_check.RagCheck(
        tmp_path, facts, two, "0", (), Pages("DIFFERENT", "x", read=False), 1, True
    )
    assert not different.accepted


@pytest.fixture(scope="module")
def written(shared_renders, signing_key, tmp_path_factory):
    """A real, signed report of four questions with little measured: a short document."""
    few = [
        ItemRecord(id=f"q{i}", values={"hit": i % 2, "adherence": i / 4, "correct": 1}, missing={})
        for i in range(4)
    ]
    evidence = record({"ward": few}, by="readers", created=NOW.isoformat(timespec="seconds"))
    folder = tmp_path_factory.mktemp("written") / "run"
    run = open_run(folder, model="rag", fingerprint="f", force=False, now=NOW)
    return write_rag(evidence, Content(), run, signing_key, lambda *_: None)


@pytest.mark.slow
def test_a_real_report_is_identical_when_drawn_again_and_every_attack_on_its_file_is_found(
    written, trust, tmp_path, signing_key, monkeypatch
):
    assert {path.name for path in written.folder.iterdir()} == {*OURS, "run.json"}
    document, evidence = written.pdf.read_bytes(), written.evidence
    monkeypatch.setattr(pdf, "render", REAL)  # drawn again, not remembered
    good = check_rag(written.pdf, trust)
    assert (good.accepted, good.rerender) == (True, "IDENTICAL"), good.verdict
    assert check_rag(written.record, trust).accepted
    monkeypatch.undo()

    def checked(data):
        path = tmp_path / "x.pdf"
        path.write_bytes(data)
        return check_rag(path, trust)

    assert not checked(document + b"\n").valid
    flipped = bytearray(document)
    flipped[len(document) // 3] ^= 1
    with suppress(ReportError):
        assert not checked(bytes(flipped)).valid
    page = html(evidence, Content())
    assert "4 questions" in page
    forged = pdf.render(
        page.replace("4 questions", "400 questions"), to_bytes(evidence), evidence.created, Content()
    )
    resigned = sign_pdf(forged, signing_key, meaning="author")
    found = checked(resigned)
    assert found.signature.valid
    assert (found.rerender, found.valid) == ("DIFFERENT", False)
    # another renderer: byte by byte nothing can be said, but the words are looked for
    other = {**pdf.renderer_versions(), "pango": "0.1"}
    monkeypatch.setattr(pdf, "renderer_versions", lambda: other)
    assert checked(document).rerender == "NOT_COMPARABLE"
    assert checked(document).accepted
    assert not checked(resigned).valid
    # a checker that compares no pages misses it
    monkeypatch.setattr(record_check, "compare_pages", None)
    monkeypatch.setattr(rag_check, "compare_pages", lambda *_, **__: Pages("IDENTICAL", "no", read=True))
    assert checked(resigned).valid


@pytest.mark.slow
def test_pages_of_other_templates_or_a_time_before_the_record_are_not_accepted(
    written, trust, tmp_path, signing_key, monkeypatch
):
    monkeypatch.setattr("clinsafe.reports.rag_render.sha256_file", lambda _: "0" * 64)
    found = check_rag(written.pdf, trust)
    assert (found.rerender, found.accepted) == ("NOT_COMPARABLE", False)
    assert check_rag(written.pdf, trust, record_only=True).accepted
    monkeypatch.undo()
    late = written.evidence.model_copy(
        update={"created": (NOW + timedelta(days=3)).isoformat(timespec="seconds")}
    )
    document = pdf.render("<title>x</title><p>x</p>", to_bytes(late), late.created, Content())
    (tmp_path / "late.pdf").write_bytes(sign_pdf(document, signing_key, meaning="author"))
    assert "before the record was written" in check_rag(tmp_path / "late.pdf", trust).verdict
