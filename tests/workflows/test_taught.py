"""Wrong arguments from Python are one line that names what is valid, before anything is computed."""

from __future__ import annotations

import dataclasses
import sys

import pytest

import clinsafe
from clinsafe.adapters.encoders import ModelOptions
from clinsafe.adapters.reference import FakeEncoder
from clinsafe.cli import app
from clinsafe.errors import UsageError
from clinsafe.protocols import ModelIdentity
from clinsafe.workflows.audit import _subjects


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        (ModelIdentity("m", kind="reranker"), r"kind.*'bi-encoder', 'cross-encoder'.*got 'reranker'"),
        (ModelIdentity(7), "name.*string.*got 7"),
        (None, "ModelIdentity"),
        ("m", "ModelIdentity"),
    ],
)
def test_an_identity_that_is_none_names_the_field(tmp_path, identity, words):
    encoder = FakeEncoder("words")
    encoder.identity = identity
    with pytest.raises(UsageError, match=words) as caught:
        clinsafe.audit(encoder, out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert "pydantic" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["hazard", "model", "options", "signing_key"])
def test_an_unknown_argument_is_named_with_those_there_are(tmp_path, name):
    with pytest.raises(UsageError, match=f"no argument '{name}'.*base_url.*hazards.*protocol"):
        clinsafe.audit("fake:words", out=tmp_path / "run", **{name: "x"})
    assert not (tmp_path / "run").exists()


def test_address_and_time_out_reach_the_endpoint_and_no_other_model():
    options = ModelOptions(base_url="http://127.0.0.1:1/v1", timeout=5, offline=True)
    own = dataclasses.replace(options, offline=False)
    minilm, endpoint = _subjects(["minilm", "endpoint:m"], options)
    assert (minilm.options.base_url, minilm.options.timeout, minilm.options.offline) == (None, 60, True)
    assert endpoint.options == options
    assert [s.options for s in _subjects("minilm", own)] == [
        own
    ]  # alone, it is refused when the model is loaded


def test_ctrl_c_in_any_command_has_a_line(monkeypatch, capsys, tmp_path):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("clinsafe.reports.evidence.load", stop)
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text("{}")
    monkeypatch.setattr(sys, "argv", ["clinsafe", "compare", *map(str, files)])
    with pytest.raises(SystemExit) as caught:
        app.main()
    assert caught.value.code == 130
    assert capsys.readouterr().err == "clinsafe: stopped\n"
