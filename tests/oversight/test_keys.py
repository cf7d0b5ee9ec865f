"""The local key: made on request alone, private, and never shown."""

from __future__ import annotations

import os
import stat

import pytest

from clinsafe.errors import KeyFileError
from clinsafe.oversight.keys import LogKey, default_file, key_file, load_key, load_keys, make_key
from tests.oversight.kit import KEY, OTHER


def test_a_key_is_made_once_private_and_read_back(tmp_path):
    path = tmp_path / "keys" / "log.key"
    made = make_key(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert load_key(path) == made
    assert make_key(tmp_path / "other.key").secret != made.secret
    with pytest.raises(KeyFileError, match="exists"):
        make_key(path)
    assert load_key(path) == made
    assert set(load_keys([path, tmp_path / "other.key"])) > {made.id}


def test_its_umask_does_not_matter(tmp_path):
    before = os.umask(0)
    try:
        make_key(tmp_path / "log.key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "log.key").stat().st_mode) == 0o600


def test_one_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "log.key"
    make_key(path)
    for mode in (0o640, 0o604, 0o660):
        path.chmod(mode)
        with pytest.raises(KeyFileError, match="chmod 600"):
            load_key(path)


@pytest.mark.parametrize("text", ["", "abc", "0" * 63, "g" * 64, "0" * 65, "\x00" * 64])
def test_what_is_no_key_is_refused_without_being_quoted(tmp_path, text):
    path = tmp_path / "log.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="holds no log key") as caught:
        load_key(path)
    assert not text or text not in str(caught.value)


def test_none_is_made_by_looking_for_one(tmp_path):
    with pytest.raises(KeyFileError, match="log init"):
        load_key(tmp_path / "none.key")
    assert not list(tmp_path.iterdir())


def test_none_is_made_in_a_git_work_tree(tmp_path):
    (tmp_path / ".git").mkdir()
    with pytest.raises(KeyFileError, match="git work tree"):
        make_key(tmp_path / "keys" / "log.key")


def test_where_it_lies(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert key_file({}) == default_file() == tmp_path / "clinsafe" / "keys" / "log.key"
    assert key_file({"CLINSAFE_LOG_KEY": "/x/y.key"}).as_posix() == "/x/y.key"
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    assert default_file().is_absolute()


def test_a_key_in_the_variable_itself_is_refused_and_not_repeated():
    secret = KEY.secret.hex()
    with pytest.raises(KeyFileError) as caught:
        key_file({"CLINSAFE_LOG_KEY": secret})
    assert secret not in str(caught.value)


def test_neither_repr_nor_id_shows_the_secret():
    for shown in (repr(KEY), str(KEY), KEY.id):
        assert KEY.secret.hex()[:8] not in shown
        assert repr(KEY.secret)[2:-1][:12] not in shown
    assert KEY.id != OTHER.id
    with pytest.raises(KeyFileError):
        LogKey(b"short")


def test_the_digest_of_a_text_is_keyed_and_is_no_code_of_a_record():
    assert KEY.digest("text") == KEY.digest("text") != OTHER.digest("text")
    assert KEY.digest("text") != KEY.mac(b"text")
    assert KEY.digest("\ud800")  # a text that is no UTF-8 is still recorded
