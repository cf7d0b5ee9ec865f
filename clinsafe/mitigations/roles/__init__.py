"""Reading who does what to whom: relations, marks, people, and the order of what stands in a sentence."""
