"""The paper's pairs and figures on the command line."""

from __future__ import annotations

import pytest

from tests.cli.test_cli import run


def test_what_cannot_be_right_is_listed_with_reasons(tmp_path):
    done = run("suite", "published", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "52 claims checked, 15 not consistent"
    assert "Why our figures differ" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.slow
def test_a_model_is_measured_on_the_public_pairs_beside_the_papers_figures(tmp_path):
    done = run("suite", "paper38", "-m", "minilm", cwd=tmp_path, HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("temporal"))
    assert "0.780 ± 0.264" in line
    assert "4/6 [0.22, 0.96]" in line
    assert "0.965 ± 0.022" in line
    assert max(map(len, done.stdout.splitlines())) <= 80
