"""End to end (checklist item 8): does a contradicting passage reach the reader unflagged, with and without the guard?

Real queries over real text. Each query has a passage that is right and one in which the sentence that matters was
edited into its contradiction; both stand among thousands of ordinary passages. A retriever ranks, a guard checks, and
the figures say what the reader was shown.
"""
