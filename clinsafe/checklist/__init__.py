"""Judging: figures in, verdicts out. Nothing here knows how a figure was measured."""
