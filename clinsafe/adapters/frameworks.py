"""Which framework a retriever belongs to, told from the names of its classes: none is imported to find out."""

from __future__ import annotations

from typing import Any

from clinsafe.errors import UsageError
from clinsafe.guarded import Guard

GUARDED = ("clinsafe.adapters.plain", "clinsafe.adapters.langchain", "clinsafe.adapters.llamaindex")
INSTEAD = {
    ("langchain_core", "VectorStore"): "a LangChain vector store is no retriever; give store.as_retriever()",
    ("llama_index", "BaseIndex"): "a LlamaIndex index is no retriever; give index.as_retriever()",
    ("llama_index", "BaseQueryEngine"): (
        "a LlamaIndex query engine has already answered; guard its retriever, or give it "
        "node_postprocessors=[clinsafe.adapters.llamaindex.ClinsafePostprocessor(guard=...)]"
    ),
}


def guard_retriever(retriever: Any, guard: Guard, *, k: int | None = None) -> Any:
    """A retriever of the same shape whose passages are checked.

    Args:
        retriever: a LangChain retriever or Runnable (gives a LangChain retriever back), a LlamaIndex retriever (gives
            a LlamaIndex retriever back), or a function or object (gives a `clinsafe.adapters.plain.GuardedRetriever`
            back).
        guard: checks what it returns.
        k: at most so many passages are shown; None shows all.

    Raises:
        UsageError: it is no retriever, is guarded already, or has to be guarded elsewhere; the message says where.
        MissingDependency: its framework cannot be imported.
    """
    from clinsafe.adapters.plain import GuardedRetriever, usable_k

    usable_k(k)
    if isinstance(retriever, type):
        raise UsageError(f"{retriever.__qualname__} is a class; give a retriever made of it")
    names = [(cls.__module__, cls.__qualname__) for cls in type(retriever).__mro__]
    if any(module in GUARDED for module, _ in names):
        raise UsageError(f"this {type(retriever).__qualname__} is guarded already")
    if hasattr(retriever, "__haystack_input__"):
        raise UsageError(
            "a Haystack retriever is guarded inside its pipeline: add clinsafe.adapters.haystack.ClinsafeGuard and "
            "connect the retriever's documents to it"
        )
    for (package, name), instead in INSTEAD.items():
        if _is_a(names, package, name):
            raise UsageError(instead)
    if _is_a(names, "langchain_core", "Runnable"):
        from clinsafe.adapters.langchain import GuardedLangChainRetriever

        return GuardedLangChainRetriever(retriever=retriever, guard=guard, k=k)
    if _is_a(names, "llama_index", "BaseRetriever"):
        from clinsafe.adapters.llamaindex import GuardedLlamaIndexRetriever

        return GuardedLlamaIndexRetriever(retriever, guard, k)
    return GuardedRetriever(retriever, guard, k)


def _is_a(names: list[tuple[str, str]], package: str, name: str) -> bool:
    """Whether a class of this name in this package is among a retriever's classes (``Runnable[In, Out]`` too)."""
    return any(
        module.partition(".")[0] == package and qualname.partition("[")[0] == name
        for module, qualname in names
    )
