"""Where an embeddings endpoint is, and with which key it is asked; neither is ever repeated in a message."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
from typing import TYPE_CHECKING

from clinsafe.errors import UsageError

if TYPE_CHECKING:
    import httpx2

KEY, ADDRESS = "CLINSAFE_API_KEY", "CLINSAFE_BASE_URL"


def parse_address(base_url: str | None) -> httpx2.URL:
    """The URL to ask, from the part before ``/embeddings``; None reads ``CLINSAFE_BASE_URL``.

    Raises UsageError, which never repeats the URL: there may be a password in it.
    """
    import httpx2

    text, url = (base_url or os.environ.get(ADDRESS, "")).strip(), httpx2.URL()
    with contextlib.suppress(httpx2.InvalidURL, ValueError):
        url = httpx2.URL(text)
        url = url.copy_with(raw_path=url.raw_path.rstrip(b"/") + b"/embeddings")
    if not text:
        fault = "is missing"
    elif not url.host or url.scheme not in ("http", "https") or not 0 < (url.port or 80) < 1 << 16:
        fault = "is not an http or https URL"
    elif url.userinfo:
        fault = f"holds a user or a password; the key is read from {KEY}"
    elif "?" in text or "#" in text:
        fault = "holds a query or a fragment"
    else:
        return url
    raise UsageError(f"the endpoint's address {fault}; give --base-url http://HOST:PORT/v1 or set {ADDRESS}")


def key_for(url: httpx2.URL) -> str:
    """The key from the environment, "" where there is none. OpenAI's own goes to OpenAI's own host only."""
    own = (url.scheme, url.host) == ("https", "api.openai.com")
    name = "OPENAI_API_KEY" if own and not os.environ.get(KEY) else KEY
    key = os.environ.get(name, "").strip()
    if not re.fullmatch(r"[\x21-\x7e]*", key):  # the HTTP library would print it in its complaint
        raise UsageError(f"{name} must be ASCII letters, digits and signs, without spaces")
    return key


def on_this_machine(url: httpx2.URL) -> bool:
    """Whether the host is this machine, as ``--offline`` understands it."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(url.host).is_loopback
    return url.host == "localhost"
