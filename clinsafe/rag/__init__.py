"""What a RAG application did, question by question: traces, and later what they say about its stages."""
