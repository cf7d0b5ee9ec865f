"""From what the user wrote after ``--model`` to an encoder."""

from __future__ import annotations

from clinsafe import plugins
from clinsafe.protocols import Encoder

DEFAULT = "sentence-transformers"


def load_encoder(spec: str, *, revision: str | None = None, device: str | None = None, batch_size: int = 32,
                 offline: bool = False, trust_remote_code: bool = False) -> Encoder:  # fmt: skip
    """An encoder from ``alias``, ``path``, ``hub/id`` or ``plugin:name``.

    Only a prefix that names an installed ``clinsafe.encoders`` plug-in is one; ``C:\\models`` is a path.
    """
    prefix, colon, rest = spec.partition(":")
    plugin, name = (prefix, rest) if colon and prefix in plugins.available("encoders") else (DEFAULT, spec)
    load = plugins.load("encoders", plugin)
    encoder: Encoder = load(
        name,
        revision=revision,
        device=device,
        batch_size=batch_size,
        offline=offline,
        trust_remote_code=trust_remote_code,
    )
    return encoder
