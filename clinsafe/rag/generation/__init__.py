"""What an answer is worth: generation metrics, question by question (RAG-X, section III-B)."""

from clinsafe.rag.generation.accuracy import generation_values

__all__ = ["generation_values"]
