"""The miner: quads made from sentences of real text by edits that are declared as content (decision D13)."""
