"""LangChain: a retriever that guards another one, inside any chain, sync and async. Needs ``langchain-core``."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import Field

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
from clinsafe.errors import MissingDependency
from clinsafe.guarded import GuardedPassage

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise MissingDependency(
        "guarding a LangChain retriever",
        error.name or "langchain-core",
        "pip install 'clinsafe[guard]' langchain-core",
    ) from error


class GuardedLangChainRetriever(BaseRetriever):
    """A LangChain retriever whose documents are checked; it stands wherever the one that it wraps stood.

    ``page_content`` is the annotated text. ``metadata["clinsafe"]`` holds what was found in the document and its
    ``original`` text, ``metadata["clinsafe_answer"]`` what concerns the answer, with what was withheld. Where there is
    something to say about the answer, the first document is a notice with ``metadata["clinsafe_notice"]``. What the
    retriever raises reaches the caller.

    Attributes:
        retriever: a `BaseRetriever`, or any Runnable of a query to documents.
        guard: a `clinsafe.guarded.Guard`.
        k: at most so many documents are shown, the notice not counted; how many are fetched is the retriever's own
            setting, or an argument of a call: ``invoke(query, k=3)``.
    """

    retriever: Any = Field(repr=False)
    guard: Any = Field(repr=False, exclude=True)
    k: int | None = Field(default=None, gt=0)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        config = {"callbacks": run_manager.get_child()}
        found = self.retriever.invoke(query, config=config, **kwargs)
        return self._documents(query, found, usable_k(kwargs.get("k", self.k)))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        config = {"callbacks": run_manager.get_child()}
        found = await self.retriever.ainvoke(query, config=config, **kwargs)
        return await asyncio.to_thread(self._documents, query, found, usable_k(kwargs.get("k", self.k)))

    def _documents(self, query: str, found: object, k: int | None) -> list[Document]:
        done = checked(self.guard, query, found, k)
        documents = [_document(done, row) for row in done.answer.passages]
        if told := notice(done.answer):
            documents.insert(
                0, Document(id=NOTICE_ID, page_content=told, metadata=notice_metadata(done.data))
            )
        return documents


def _document(done: Checked, row: GuardedPassage) -> Document:
    item, text = done.item(row), shown_text(row)
    if not isinstance(item, Document):  # a Runnable that returns texts or mappings
        metadata = passage_metadata(row.passage.metadata, row, done.data)
        return Document(id=row.passage.id, page_content=text, metadata=metadata)
    changed = {
        "id": row.passage.id,
        "page_content": text,
        "metadata": passage_metadata(item.metadata, row, done.data),
    }
    return item.model_copy(update=changed)
