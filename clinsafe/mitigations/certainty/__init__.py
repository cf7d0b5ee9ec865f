"""How certain a text is of a thing: cues, what changes them, what they are said of, and when two texts disagree."""
