"""LlamaIndex: a retriever that guards another one, and a node postprocessor. Needs ``llama-index-core``."""

from __future__ import annotations

import asyncio
from typing import Any

from clinsafe.adapters.documents import (
    NOTICE_ID,
    Checked,
    checked,
    notice,
    notice_metadata,
    passage_metadata,
    shown_text,
)
from clinsafe.adapters.plain import usable_k
from clinsafe.adapters.retrievers import OWN
from clinsafe.errors import MissingDependency, UsageError
from clinsafe.guarded import Guard, GuardedPassage

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.bridge.pydantic import Field
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import (
        BaseNode,
        ImageNode,
        MediaResource,
        Node,
        NodeWithScore,
        QueryBundle,
        TextNode,
    )
except ImportError as error:
    raise MissingDependency(
        "guarding a LlamaIndex retriever",
        error.name or "llama-index-core",
        "pip install 'clinsafe[guard]' llama-index-core",
    ) from error


class GuardedLlamaIndexRetriever(BaseRetriever):
    """A LlamaIndex retriever whose nodes are checked; for a query engine that has other postprocessors, see
    `ClinsafePostprocessor`.

    A node's text is the annotated one, in every `MetadataMode`. ``metadata["clinsafe"]`` holds what was found and the
    ``original`` text, ``metadata["clinsafe_answer"]`` what concerns the answer, with what was withheld; both are kept
    out of the prompt and of embeddings. Where there is something to say about the answer, the first node is a notice.
    What the retriever raises reaches the caller.

    Args:
        retriever: the one to guard.
        guard: checks its nodes.
        k: at most so many nodes are shown, the notice not counted.
    """

    def __init__(self, retriever: BaseRetriever, guard: Guard, k: int | None = None) -> None:
        super().__init__(callback_manager=getattr(retriever, "callback_manager", None))
        self.retriever, self.guard, self.k = retriever, guard, usable_k(k)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self.retriever.retrieve(query_bundle)
        return guarded_nodes(self.guard, query_bundle.query_str, found, self.k)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await self.retriever.aretrieve(query_bundle)
        return await asyncio.to_thread(guarded_nodes, self.guard, query_bundle.query_str, found, self.k)


class ClinsafePostprocessor(BaseNodePostprocessor):
    """Guards the nodes of a query engine. It belongs last: one behind it may exchange the annotated text.

    Attributes:
        guard: a `clinsafe.guarded.Guard`.
        k: at most so many nodes are shown, the notice not counted.
    """

    guard: Any = Field(exclude=True, repr=False)
    k: int | None = Field(default=None, gt=0)

    @classmethod
    def class_name(cls) -> str:
        """Name in LlamaIndex's own records."""
        return "ClinsafePostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return guarded_nodes(self.guard, _query(query_bundle), nodes, self.k)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._postprocess_nodes, nodes, query_bundle)


def guarded_nodes(guard: Guard, query: str, found: object, k: int | None = None) -> list[NodeWithScore]:
    """The nodes with what was found in them, the notice first where there is one.

    A notice has the best score of the nodes, so that a cut-off by score behind it does not drop it before them.
    """
    done = checked(guard, query, found, k, _beyond_text)
    nodes = [_node(done, row) for row in done.answer.passages]
    if told := notice(done.answer):
        scores = [node.score for node in nodes if node.score is not None]
        nodes.insert(0, NodeWithScore(node=_notice(told, done.data), score=max(scores, default=None)))
    return nodes


def _query(query_bundle: QueryBundle | None) -> str:
    if query_bundle is None:
        raise UsageError(
            "the guard compares nodes with the query: give postprocess_nodes(nodes, query_str=...)"
        )
    return query_bundle.query_str


def _notice(text: str, data: dict[str, Any]) -> TextNode:
    keys = ["source", *OWN]
    return TextNode(
        id_=NOTICE_ID,
        text=text,
        metadata=notice_metadata(data),
        excluded_llm_metadata_keys=keys,
        excluded_embed_metadata_keys=keys,
    )


def _node(done: Checked, row: GuardedPassage) -> NodeWithScore:
    item = done.item(row)
    own = getattr(item, "node", item)
    node = own if isinstance(own, BaseNode) else TextNode(metadata=dict(row.passage.metadata))
    changed: dict[str, Any] = {
        "id_": row.passage.id,
        "embedding": None,  # it was the original text's
        "metadata": passage_metadata(node.metadata, row, done.data),
        "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, *OWN],
        "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, *OWN],
    }
    return NodeWithScore(node=_with_text(node, shown_text(row), changed), score=row.passage.score)


def _with_text(node: BaseNode, text: str, changed: dict[str, Any]) -> BaseNode:
    """The node with another text. What is more than text keeps its class; all else becomes a plain text node.

    An `IndexNode` would be exchanged for what it points to, and a class of somebody's own may take its text from
    anywhere.
    """
    if _beyond_text(node) and isinstance(node, Node):
        return node.model_copy(update={**changed, "text_resource": MediaResource(text=text)})
    if _beyond_text(node):
        return node.model_copy(update={**changed, "text": text})
    kept = ("relationships", "metadata_template", "metadata_separator", "text_template", "mimetype")
    same = {name: getattr(node, name) for name in kept if hasattr(node, name)}
    places = {name: getattr(node, name, None) for name in ("start_char_idx", "end_char_idx")}
    return TextNode(text=text, **{**same, **places, **changed})


def _beyond_text(item: Any) -> str:
    node = getattr(item, "node", item)
    if isinstance(node, ImageNode) or getattr(node, "image_resource", None) is not None:
        return "an image"
    for kind in ("audio", "video"):
        if getattr(node, f"{kind}_resource", None) is not None:
            return f"{'an' if kind == 'audio' else 'a'} {kind}"
    return ""
