"""From what the user wrote after ``--model`` to something that encodes or scores.

The kind is found from the files: an ONNX graph, a cross-encoder, or a sentence-transformers encoder. Options
that make no sense for the kind found are refused, so that nobody believes in a setting that nothing read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Literal

from clinsafe import plugins
from clinsafe.adapters.cross_encoder import CrossEncoderScorer
from clinsafe.adapters.onnx import POOLINGS, OnnxCrossEncoder, OnnxEncoder, open_onnx
from clinsafe.adapters.onnx_export import onnx_folder
from clinsafe.adapters.prompts import choose, hinted, with_prompts
from clinsafe.adapters.sentence_transformers import (
    SentenceTransformerEncoder,
    is_classifier,
    modules,
    read_json,
)
from clinsafe.adapters.weights import ModelFolder, resolve
from clinsafe.errors import ModelError, UsageError
from clinsafe.protocols import Encoder, PairScorer

DEFAULT = "sentence-transformers"
GROUPS: tuple[Literal["encoders", "scorers"], ...] = ("encoders", "scorers")


@dataclass(frozen=True)
class ModelOptions:
    """How to load a model; every plug-in gets all of them as keywords.

    Attributes:
        revision: hub commit, tag or branch.
        device: torch device; None lets the library choose.
        batch_size: texts per forward pass; no verdict may depend on it.
        backend: ``torch`` or ``onnx``.
        prompts: ``auto`` (the model's own), ``none`` or a style of `clinsafe.adapters.prompts.STYLES`.
        query_prompt, passage_prompt: the text itself; wins over `prompts`.
        pooling: ``cls``, ``mean`` or ``last`` for a graph of hidden states; None is what the folder says.
        base_url, timeout: address of an endpoint, and seconds to wait for it.
        offline: use only what is on this machine.
        trust_remote_code: allow the model's own code and pickled weights (decision D12).
    """

    revision: str | None = None
    device: str | None = None
    batch_size: int = 32
    backend: str = "torch"
    prompts: str = "auto"
    query_prompt: str | None = None
    passage_prompt: str | None = None
    pooling: str | None = None
    base_url: str | None = None
    timeout: float = 60.0
    offline: bool = False
    trust_remote_code: bool = False

    def __post_init__(self) -> None:
        if self.backend not in ("torch", "onnx"):
            raise UsageError(f"no backend {self.backend!r}; there are: torch, onnx")
        if self.pooling is not None and self.pooling not in POOLINGS:
            raise UsageError(f"no pooling {self.pooling!r}; there are: {', '.join(POOLINGS)}")
        if self.batch_size < 1:
            raise UsageError(
                f"a batch of {self.batch_size} texts cannot be run; the batch size is at least 1"
            )
        choose({}, None, style=self.prompts)

    def meant_for(self, spec: str) -> ModelOptions:
        """These options for one of several models: address and time-out are the endpoint's, and no other model's."""
        usual = ModelOptions()
        return self if is_endpoint(spec) else replace(self, base_url=usual.base_url, timeout=usual.timeout)


PROMPTS = ("prompts", "query_prompt", "passage_prompt")
ENDPOINT = {"base_url": "only endpoint:NAME has an address", "timeout": "only endpoint:NAME is waited for"}
ONNX = {"device": "onnxruntime runs on the CPU here"}
NO_PROMPTS = dict.fromkeys(PROMPTS, "a cross-encoder reads both texts at once and takes no prompts")
REFUSED: dict[str, dict[str, str]] = {
    "a sentence-transformers model": {
        "pooling": "torch pools as the model's own configuration says; it is for ONNX",
    },
    "an ONNX encoder": ONNX,
    "a cross-encoder": {
        "pooling": "a cross-encoder does not pool",
        "backend": "only encoders are exported to ONNX; give a folder with the cross-encoder's ONNX file",
        **NO_PROMPTS,
    },
    "an ONNX cross-encoder": {"pooling": "a cross-encoder does not pool", **ONNX, **NO_PROMPTS},
}
"""Kind -> option -> why it makes no sense there."""


def is_endpoint(spec: str) -> bool:
    """Whether what was written after ``--model`` names a model behind an address."""
    return spec.startswith("endpoint:")


def load_model(spec: str, options: ModelOptions | None = None) -> Encoder | PairScorer:
    """The model behind ``alias``, ``folder``, ``file.onnx``, ``hub/id`` or ``plugin:name``.

    Only a prefix that names an installed plug-in is one; ``C:\\models`` is a path.

    Returns:
        An `Encoder` (a `QueryEncoder` where queries and passages get different prompts) or a `PairScorer`.

    Raises:
        ModelError and its kinds, MissingDependency; UsageError for an option that makes no sense.
    """
    options = options or ModelOptions()
    prefix, colon, rest = spec.partition(":")
    if colon and prefix == DEFAULT:
        spec, colon = rest, ""
    for group in GROUPS:
        if colon and prefix in plugins.available(group):
            loaded: Encoder | PairScorer = plugins.load(group, prefix)(rest, **asdict(options))
            return _prompted(loaded, options)
    folder = resolve(
        spec,
        revision=options.revision,
        offline=options.offline,
        trust_remote_code=options.trust_remote_code,
        backend=options.backend,
    )
    if folder.graph is not None:
        return _onnx(folder, options)
    if _is_cross_encoder(folder):
        _refuse("a cross-encoder", folder.name, options)
        return CrossEncoderScorer(folder, device=options.device, batch_size=options.batch_size)
    if options.backend == "onnx":
        _refuse("an ONNX encoder", folder.name, options)
        return _onnx(onnx_folder(folder, pooling=options.pooling), options)
    _refuse("a sentence-transformers model", folder.name, options)
    encoder = SentenceTransformerEncoder(folder, device=options.device, batch_size=options.batch_size)
    return _prompted(encoder, options)


def _onnx(folder: ModelFolder, options: ModelOptions) -> Encoder | PairScorer:
    model = open_onnx(folder, pooling=options.pooling, batch_size=options.batch_size)
    if isinstance(model, OnnxCrossEncoder):
        _refuse("an ONNX cross-encoder", folder.name, options)
        return model
    _refuse("an ONNX encoder", folder.name, options)
    return _prompted(model, options)


def _is_cross_encoder(folder: ModelFolder) -> bool:
    """Whether the files are those of a cross-encoder; a library of another kind is refused."""
    saved = str(read_json(folder.path / "config_sentence_transformers.json").get("model_type", ""))
    if saved in ("CrossEncoder", "SentenceTransformer", ""):
        return saved == "CrossEncoder" or (not modules(folder.path) and is_classifier(folder.path))
    raise ModelError(
        f"model {folder.name!r} is a {saved}; valid are sentence-transformers encoders and cross-encoders"
    )


def _refuse(kind: str, name: str, options: ModelOptions) -> None:
    for option in fields(options):
        value = getattr(options, option.name)
        why = (REFUSED[kind] | ENDPOINT).get(option.name)
        harmless = (option.name, value) in (("device", "cpu"), ("prompts", "none"))
        if why and value != option.default and not harmless:
            flag = f"--{option.name.replace('_', '-')}"
            raise UsageError(f"{flag} makes no sense for {name!r}, {kind}: {why}")


def _prompted(model: Encoder | PairScorer, options: ModelOptions) -> Encoder | PairScorer:
    """The model behind the prompts that were asked for; a plug-in that says it has put them there is left alone."""
    if not isinstance(model, Encoder):
        if not isinstance(model, PairScorer):
            raise ModelError(
                f"a plug-in gave a {type(model).__name__}, which neither encodes nor scores pairs"
            )
        _refuse_prompts(model, options)
        return model
    if model.identity.settings.get("prompts", "none") != "none":
        return model
    chosen = choose(
        getattr(model, "config_prompts", {}),
        getattr(model, "default_prompt_name", None),
        style=options.prompts,
        query=options.query_prompt,
        passage=options.passage_prompt,
    )
    if chosen and isinstance(model, OnnxEncoder) and not model.include_prompt:
        raise ModelError(
            f"model {model.identity.name!r} leaves the prompt out of its pooling, which is done only with "
            "--backend torch"
        )
    return with_prompts(model, chosen) if chosen else hinted(model)


def _refuse_prompts(model: PairScorer, options: ModelOptions) -> None:
    if options.query_prompt or options.passage_prompt or options.prompts not in ("auto", "none"):
        raise UsageError(f"prompts make no sense for {model.identity.name!r}, which scores pairs")
