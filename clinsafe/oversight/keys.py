"""The log's local key: 32 random bytes in a file that only its owner can read.

The key makes the chain (a record cannot be altered without it) and hides texts (a plain hash of a short query can be
guessed, decision D11). It is made on request alone, never as a side effect, and never stands in a message or a repr.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from clinsafe.errors import KeyFileError

VARIABLE = "CLINSAFE_LOG_KEY"
SIZE = 32  # bytes
_HEX = re.compile(rf"[0-9a-f]{{{2 * SIZE}}}")
_ID_DIGITS = 16


@dataclass(frozen=True, slots=True)
class LogKey:
    """A key; `id` names it and tells nothing about it.

    Args:
        secret: 32 random bytes.
    """

    secret: bytes = field(repr=False)
    id: str = field(init=False)

    def __post_init__(self) -> None:
        if len(self.secret) != SIZE:
            raise KeyFileError(f"a log key has {SIZE} bytes, not {len(self.secret)}")
        object.__setattr__(
            self, "id", sha256(b"clinsafe log key id\n" + self.secret).hexdigest()[:_ID_DIGITS]
        )

    def mac(self, body: bytes) -> str:
        """HMAC-SHA-256 of a record's bytes, 64 hex digits."""
        return hmac.new(self._derived(b"chain"), body, sha256).hexdigest()

    def digest(self, text: str) -> str:
        """HMAC-SHA-256 of a text, 64 hex digits: equal texts can be seen to be equal by who holds the key."""
        return hmac.new(self._derived(b"text"), text.encode("utf-8", "surrogatepass"), sha256).hexdigest()

    def _derived(self, use: bytes) -> bytes:
        # Two uses, two keys: no text can be chosen so that its digest passes for a record's.
        return hmac.new(self.secret, b"clinsafe log " + use, sha256).digest()


def default_file() -> Path:
    """``$XDG_CONFIG_HOME/clinsafe/keys/log.key``; ``~/.config`` where that is unset or relative."""
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".config") / "clinsafe" / "keys" / "log.key"


def key_file(environ: Mapping[str, str] | None = None) -> Path:
    """The file that CLINSAFE_LOG_KEY names, else `default_file`.

    Raises:
        KeyFileError: the variable holds a key itself.
    """
    named = (os.environ if environ is None else environ).get(VARIABLE, "")
    if _HEX.fullmatch(named.strip().lower()):  # and the message does not repeat it
        raise KeyFileError(
            f"{VARIABLE} holds a key itself; write that to a file (mode 600) and name the file"
        )
    return Path(named) if named else default_file()


def load_key(path: Path) -> LogKey:
    """Read a key file.

    Raises:
        KeyFileError: there is none, others can open it, or it holds no key.
    """
    if not path.is_file():
        raise KeyFileError(
            f"{path}: no such log key; make one with `clinsafe log init`, or name it in {VARIABLE}"
        )
    try:
        _refuse_open(path)
        text = path.read_bytes()[: 4 * SIZE].decode("ascii", "replace").strip()
    except OSError as error:
        raise KeyFileError(f"{path}: cannot be read ({error.strerror})") from None
    if not _HEX.fullmatch(text):
        raise KeyFileError(f"{path}: holds no log key; one is {2 * SIZE} hex digits on one line")
    return LogKey(bytes.fromhex(text))


def load_keys(paths: Iterable[Path]) -> dict[str, LogKey]:
    """Key id -> key, for checking a log whose key was changed."""
    keys = (load_key(path) for path in paths)
    return {key.id: key for key in keys}


def make_key(path: Path) -> LogKey:
    """Write a new key (mode 600; a folder that is made has 700) and return it.

    Raises:
        KeyFileError: there is a file already, the folder lies in a git work tree or cannot be written.
    """
    path = path.expanduser().absolute()
    tree = next((parent for parent in path.parents if (parent / ".git").exists()), None)
    if tree is not None:
        raise KeyFileError(f"{path}: lies in the git work tree {tree}; name a file outside any work tree")
    secret = secrets.token_bytes(SIZE)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # O_EXCL with the mode: at no moment is there a key that others can read, or a link followed
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(secret.hex() + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    except FileExistsError:
        raise KeyFileError(
            f"{path}: exists already; a log key is never replaced, name another file"
        ) from None
    except OSError as error:
        raise KeyFileError(f"{path}: cannot be written ({error.strerror}); name another file") from None
    return LogKey(secret)


def _refuse_open(path: Path) -> None:
    if os.name == "posix" and path.stat().st_mode & 0o077:  # Windows has no such bits
        raise KeyFileError(f"{path}: others can open it; run: chmod 600 {path}")
