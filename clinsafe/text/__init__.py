"""Text, read once: clean-up with an offset map, sentences, tokens, abbreviations, one lazy parse.

`Reader` turns a string into a `Reading`; every filter works on the same one. Nothing here knows a hazard.
"""

from clinsafe.text.reading import Reader, Reading, Sentence
from clinsafe.text.tokens import Token
from clinsafe.text.words import WORD, words

__all__ = ["WORD", "Reader", "Reading", "Sentence", "Token", "words"]
