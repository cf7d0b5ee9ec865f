"""Judges without a network: rubrics, prompts from them, the reading of answers, and the local judge."""
