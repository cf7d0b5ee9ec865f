"""What a command writes is there whole or not at all, and a full or closed place is one line."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from clinsafe.cli import start, suite, verdict
from clinsafe.cli.files import refuse_unwritable, write_whole
from clinsafe.errors import UsageError
from tests.cli.test_cli import inside, one_line


@pytest.fixture
def full(monkeypatch):
    """A disk with room for some bytes: the next write leaves half of its text behind, as a real one does."""

    def half(self: Path, data: bytes) -> int:
        with self.open("wb") as stream:
            stream.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

    def fill(after: int = 0) -> None:
        left, whole = iter(range(after)), Path.write_bytes
        monkeypatch.setattr(
            Path,
            "write_bytes",
            lambda self, *a, **k: (half if next(left, None) is None else whole)(self, *a, **k),
        )

    return fill


def listing(folder: Path) -> dict[str, str]:
    return {p.name: p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_all_texts_are_written_and_nothing_else_stays(tmp_path):
    write_whole({tmp_path / "new" / "a.txt": "Ä", tmp_path / "b.txt": "b"})
    assert (tmp_path / "new" / "a.txt").read_text(encoding="utf-8") == "Ä"
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("after", [0, 1])
def test_a_full_disk_leaves_every_file_as_it_was(tmp_path, full, after):
    (tmp_path / "a").write_text("old")
    full(after)
    with pytest.raises(UsageError, match=r"cannot be written.*No space left") as caught:
        write_whole({tmp_path / "a": "new text", tmp_path / "b": "new text"})
    assert "\n" not in str(caught.value)
    assert listing(tmp_path) == {"a": "old"}


def test_an_interruption_leaves_every_file_as_it_was(tmp_path, monkeypatch):
    def stop(self: Path, *_: object, **__: object) -> int:
        self.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", stop)
    with pytest.raises(KeyboardInterrupt):
        write_whole({tmp_path / "a": "x"})
    assert listing(tmp_path) == {}


def test_a_link_stays_and_a_pipe_is_written_into(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_whole({tmp_path / "link": "new"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole({tmp_path / "pipe": "through"})
    assert os.read(reader, 100) == b"through"
    os.close(reader)


def test_a_device_is_never_replaced(monkeypatch):
    monkeypatch.setattr(Path, "replace", lambda *_: pytest.fail("the device was about to be replaced"))
    with pytest.raises(UsageError, match="/dev/full: cannot be written"):
        write_whole({Path("/dev/full"): "x" * 100_000})
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize(
    ("place", "words"),
    [("nowhere/x.json", "make it first"), ("folder", "is a folder"), ("file/x.json", "make it")],
)
def test_a_place_that_cannot_work_is_refused_before_anything_is_computed(tmp_path, place, words):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=words):
        refuse_unwritable(tmp_path / place)
    refuse_unwritable(tmp_path / "folder" / "x.json")
    refuse_unwritable(None)


@pytest.mark.parametrize("command", [start.init, start.checklist_init])
def test_init_leaves_no_half_file_and_no_half_set_of_files(tmp_path, full, command):
    full(1 if command is start.init else 0)
    with pytest.raises(UsageError, match="cannot be written"):
        command(tmp_path)
    assert listing(tmp_path) == {}


def test_figures_and_pages_are_whole_too(tmp_path, full, monkeypatch):
    class Result:
        class evidence:  # noqa: N801
            subjects = ()

    verdict.write_figures(Result(), tmp_path / "figures.json")
    assert json.loads((tmp_path / "figures.json").read_text()) == {}
    before = listing(tmp_path)
    full()
    for write in (
        lambda: verdict.write_figures(Result(), tmp_path / "figures.json"),
        lambda: suite.page(tmp_path),
    ):
        with pytest.raises(UsageError, match="cannot be written"):
            write()
        assert listing(tmp_path) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("init", "file/in"),
        ("init", "/proc/nothing"),
        ("checklist", "init", "file/in"),
        ("suite", "page", "--out", "/proc/nothing"),
        ("compare", "a", "b", "--json", "nowhere/x.json"),
        ("audit", "-m", "fake:words", "--json", "."),
    ],
)
def test_an_unwritable_place_is_one_line_and_exit_2(tmp_path, arguments):
    (tmp_path / "file").touch()
    one_line(inside(*arguments, cwd=tmp_path))
    assert listing(tmp_path) == {"file": ""}
