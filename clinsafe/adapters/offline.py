"""``--offline``: refuse every connection that leaves this machine (decision D11).

A Python audit hook sees each socket before it connects, whatever library opens it, and cannot be
removed once installed; so it is installed once and switched.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clinsafe.errors import OfflineError

_state = {"installed": False, "active": False}
_CONNECTING = (
    "socket.connect",
    "socket.sendto",
    "socket.sendmsg",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.gethostbyaddr",
)


def refuse_connections(active: bool = True) -> None:
    """From now on (or, with False, no longer) only loopback and Unix sockets may be reached."""
    _state["active"] = active
    if active:
        os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    if active and not _state["installed"]:
        sys.addaudithook(_hook)
        _state["installed"] = True


@contextmanager
def only_this_machine(active: bool) -> Iterator[None]:
    """Refuse connections inside the block, and put back what was before; does nothing where not `active`."""
    before = _state["active"]
    if active:
        refuse_connections()
    try:
        yield
    finally:
        _state["active"] = before


def _hook(
    event: str, arguments: tuple[Any, ...], state: dict[str, bool] = _state
) -> None:  # a default outlives the module: hooks are called while the interpreter ends
    if state["active"] and event in _CONNECTING:
        target = arguments[0] if event.startswith("socket.get") else arguments[-1]
        host = target[0] if isinstance(target, tuple) else target
        if host is not None and not _is_local(host):
            raise OfflineError(f"a connection to {host!s} was refused: --offline is on")


def _is_local(host: Any) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if not isinstance(host, str) or host in ("", "localhost") or host.startswith(("/", "\0")):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
