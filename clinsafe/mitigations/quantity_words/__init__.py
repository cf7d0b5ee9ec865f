"""The parts of the quantifier filter: words for shares, figures that are shares, and how two shares compare."""
