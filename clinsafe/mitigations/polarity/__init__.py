"""Polarity: what a text says is there, is not there, is to be done or left. The negation filter's own rooms.

`rules` reads the pack, `signs` signs the words of one sentence, `mentions` turns signs into facts, `matching` compares
them, `wording` says it in a sentence; `negex` and `negspacy` answer for one concept, for measurement.
"""
