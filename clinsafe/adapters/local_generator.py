"""A causal language model of transformers as a `Generator`: greedy, on this machine, from vetted files alone.

A passage may hold the strings that a model takes for the end of a turn (``<|im_end|>``). They are read as plain text:
the chat template is filled by tokens, so that nothing in a prompt can close it.
"""

from __future__ import annotations

import importlib.util
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from clinsafe.adapters.chat import TOKENS, Completion, NoText
from clinsafe.adapters.weights import ModelFolder, resolve
from clinsafe.content import sha256_file
from clinsafe.errors import MissingDependency, ModelError, UsageError
from clinsafe.protocols import ModelIdentity

GGUF = ".gguf"
DTYPES = ("auto", "float32", "bfloat16", "float16")
UNLIMITED = 1_000_000_000  # what tokenizers state where they know no limit
_HERE = "\ue000clinsafe-prompt\ue001"  # stands where the prompt comes; private letters that no template holds


class PromptTooLong(ModelError):
    """The prompt and the answer do not fit into what the model reads; nothing is ever cut off."""


class LocalGenerator:
    """A `Generator` over torch. Safe to call from several threads, one prompt at a time.

    Args:
        folder: vetted files, from `open_folder`.
        device: torch device; None takes the CPU.
        dtype: of the weights; ``auto`` is that of the files.
        max_new_tokens: longest answer.
        gguf: name of the GGUF file in the folder that is to be run; None runs safetensors.

    Attributes:
        context: tokens that prompt and answer may have together; None where the model does not say.

    Raises:
        ModelError: the folder cannot be loaded, is no causal language model, or lacks weights.
        UsageError: an option outside its range. MissingDependency: without transformers and torch, or gguf.
    """

    def __init__(
        self, folder: ModelFolder, *, device: str | None = None, dtype: str = "auto", max_new_tokens: int = TOKENS,
        gguf: str | None = None,
    ) -> None:  # fmt: skip
        if dtype not in DTYPES:
            raise UsageError(f"no dtype {dtype!r}; there are: {', '.join(DTYPES)}")
        if max_new_tokens < 1:
            raise UsageError(f"an answer of {max_new_tokens} tokens cannot be asked for; at least 1")
        if gguf is not None and importlib.util.find_spec("gguf") is None:
            raise MissingDependency(f"the GGUF file {gguf!r}", "gguf", "pip install gguf")
        version = _library()
        self._most, self._mutex = max_new_tokens, threading.Lock()
        self._tokenizer, self._model = _load(folder, device or "cpu", dtype, gguf)
        self._before, self._after, template = _template(self._tokenizer, folder.name)
        self.context = _context(self._model.config, self._tokenizer)
        self._decoding = _greedy(self._model, self._tokenizer, max_new_tokens)
        self.identity = ModelIdentity(
            name=folder.name,
            revision=folder.revision,
            files=folder.files,
            settings={
                "generator": f"transformers {version}, torch",
                "origin": folder.origin,
                "weights": gguf or "safetensors"
                if not folder.trusted_code
                else gguf or "as the folder has them",
                "dtype": str(self._model.dtype).removeprefix("torch."),
                "device": str(self._model.device),
                "decoding": "greedy",
                "chat_template": template,
                "max_new_tokens": str(max_new_tokens),
                "context": str(self.context or "not stated"),
            },
            trusted_code=folder.trusted_code,
        )

    def generate(self, prompt: str, /) -> str:
        """The answer's text; raises as `complete`."""
        return self.complete(prompt).text

    def complete(self, prompt: str, /) -> Completion:
        """The answer, with its tokens and the prompt's.

        Raises:
            PromptTooLong: it does not fit. NoText: an answer without words. ModelError: no memory, damaged weights.
        """
        import torch

        with self._mutex:  # a fast tokenizer keeps state and fails where two threads set it
            ids = self._ids(prompt)
            if self.context is not None and len(ids) + self._most > self.context:
                raise PromptTooLong(
                    f"the prompt has {len(ids)} tokens and the answer up to {self._most}; model "
                    f"{self.identity.name!r} reads {self.context} together"
                )
            given = torch.tensor([ids], device=self._model.device)
            try:
                with torch.inference_mode():
                    made = self._model.generate(
                        given,
                        attention_mask=torch.ones_like(given),
                        generation_config=self._decoding,
                        logits_processor=[_finite],
                    )
            except (
                RuntimeError,
                IndexError,
            ) as error:  # no memory; a tokenizer with more tokens than the model
                raise ModelError(
                    f"model {self.identity.name!r} failed at a prompt of {len(ids)} tokens ({type(error).__name__})"
                ) from error
            answer = made[0, len(ids) :]
            text = str(self._tokenizer.decode(answer, skip_special_tokens=True)).strip()
        if not text:
            raise NoText(f"model {self.identity.name!r} answered without text")
        return Completion(text, usage=(len(ids), len(answer)))

    def count(self, prompt: str, /) -> int:
        """Tokens of the prompt as the model gets it, its template with it."""
        with self._mutex:
            return len(self._ids(prompt))

    def _ids(self, prompt: str) -> list[int]:
        """Token ids; control tokens come from the template alone."""
        own = self._tokenizer(prompt, add_special_tokens=False, split_special_tokens=True, verbose=False)
        ids = [*self._before, *own["input_ids"], *self._after]
        if not ids:
            raise NoText("the prompt has no token")
        return ids


def load_local(
    name: str, *, revision: str | None = None, device: str | None = None, dtype: str = "auto",
    max_new_tokens: int = TOKENS, offline: bool = False, trust_remote_code: bool = False,
) -> LocalGenerator:  # fmt: skip
    """Resolve, vet (decision D12) and load a causal language model.

    Args:
        name: folder with safetensors, a ``.gguf`` file, or hub id.
        offline: use only what is on this machine.
        trust_remote_code: allow the model's own code and pickled weights; the identity says so.

    Raises:
        ModelError and its kinds, MissingDependency, UsageError.
    """
    folder, gguf = open_folder(name, revision=revision, offline=offline, trust_remote_code=trust_remote_code)
    return LocalGenerator(folder, device=device, dtype=dtype, max_new_tokens=max_new_tokens, gguf=gguf)


def open_folder(
    name: str, *, revision: str | None = None, offline: bool = False, trust_remote_code: bool = False
) -> tuple[ModelFolder, str | None]:
    """The vetted files of a generator, and the name of its GGUF file where it is one."""
    place = Path(name).expanduser()
    if name.lower().endswith(GGUF) and place.is_file():  # data alone: nothing beside it is read
        if revision is not None:
            raise UsageError(f"{place.name!r} is on this machine; a revision is for models from the hub")
        found = ModelFolder(
            place.parent, place.name, "", "local file", files={place.name: sha256_file(place)}
        )
        return found, place.name
    folder = resolve(name, revision=revision, offline=offline, trust_remote_code=trust_remote_code)
    if folder.graph is not None:
        raise ModelError(
            f"model {folder.name!r} holds an ONNX graph only; generators run on torch: give a folder with safetensors"
        )
    templates = {  # they shape every prompt, and are not among what shapes vectors
        file.relative_to(folder.path).as_posix(): sha256_file(file)
        for file in sorted(folder.path.rglob("*.jinja"))
        if file.is_file()
    }
    return replace(folder, files={**folder.files, **templates}), None


def _library() -> str:
    try:
        import torch  # noqa: F401 - a missing package is told before anything is loaded
        import transformers
        from transformers.utils import logging
    except ImportError as error:
        raise MissingDependency(
            "a local generator", "transformers", "pip install 'clinsafe[audit]'"
        ) from error
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    return str(transformers.__version__)


def _load(folder: ModelFolder, device: str, dtype: str, gguf: str | None) -> tuple[Any, Any]:
    """(tokenizer, model), the model whole and in evaluation mode."""
    import transformers

    library: Any = transformers
    common: dict[str, Any] = {"local_files_only": True, "trust_remote_code": folder.trusted_code}
    if gguf is not None:
        common["gguf_file"] = gguf
    weights = {} if folder.trusted_code or gguf else {"use_safetensors": True}
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(str(folder.path), **common)
        model, told = library.AutoModelForCausalLM.from_pretrained(
            str(folder.path), dtype=dtype, output_loading_info=True, **weights, **common
        )
        model = model.to(device).eval()
    except Exception as error:  # any loader fault means: this folder is not a usable model
        raise ModelError(
            f"model {folder.name!r} cannot be loaded as a causal language model of transformers: "
            f"{type(error).__name__}: {str(error)[:200]}"
        ) from error
    lost = sorted(map(str, told.get("missing_keys", ())))
    if lost:  # they would be random: a BERT gets a head made up
        raise ModelError(
            f"model {folder.name!r} lacks weights ({lost[0]}{' and more' if len(lost) > 1 else ''}); give a causal "
            "language model"
        )
    return tokenizer, model


def _template(tokenizer: Any, name: str) -> tuple[list[int], list[int], str]:
    """Token ids before and after the prompt, and what made them."""
    if not getattr(tokenizer, "chat_template", None):
        start = tokenizer("", add_special_tokens=True)["input_ids"]
        # an end of text that the tokenizer adds would make the model answer nothing
        return (
            [one for one in start if one != tokenizer.eos_token_id or one == tokenizer.bos_token_id],
            [],
            "none",
        )
    message = [{"role": "user", "content": _HERE}]
    try:
        made = str(tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False))
    except Exception as error:  # a template is a program of its own
        raise ModelError(
            f"the chat template of model {name!r} fails on one user's message ({type(error).__name__})"
        ) from error
    before, found, after = made.partition(_HERE)
    if not found or _HERE in after:
        raise ModelError(f"the chat template of model {name!r} does not show a user's message once")
    ids = [tokenizer(part, add_special_tokens=False)["input_ids"] if part else [] for part in (before, after)]
    return ids[0], ids[1], "the tokenizer's"


def _context(config: Any, tokenizer: Any) -> int | None:
    """Tokens that the model reads; None where neither it nor its tokenizer says."""
    inner = getattr(config, "text_config", None) or config
    rows = getattr(inner, "max_position_embeddings", None)
    stated = getattr(tokenizer, "model_max_length", None)
    known = [int(n) for n in (rows, stated) if isinstance(n, int | float) and 0 < n < UNLIMITED]
    return min(known) if known else None


def _greedy(model: Any, tokenizer: Any, most: int) -> Any:
    """Settings of generation; sampling, penalties and limits that the folder brings are left out."""
    import transformers

    library: Any = transformers
    own = model.generation_config
    end = own.eos_token_id if own.eos_token_id is not None else tokenizer.eos_token_id
    pad = tokenizer.pad_token_id
    if pad is None:
        pad = end[0] if isinstance(end, list) else end
    made = library.GenerationConfig(
        do_sample=False, num_beams=1, max_new_tokens=most, eos_token_id=end, pad_token_id=pad
    )
    model.generation_config = made
    return made


def _finite(_ids: Any, scores: Any) -> Any:
    """The greatest of NaN is the first token: a damaged model would seem to answer."""
    if scores.isnan().any():
        raise RuntimeError("NaN")
    return scores
