"""The suite and what is measured on it."""
