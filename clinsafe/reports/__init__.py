"""Evidence, and the documents made from it."""
