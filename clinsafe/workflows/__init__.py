"""The composition roots: each a function one can read as a story."""
