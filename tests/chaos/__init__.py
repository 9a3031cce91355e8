"""Faults on purpose: `python -m tests.chaos chaos|soak`, and the checker that judges what is left.

Pure: `history` (what happened, as values), `timeline` (questions about it), `plan` (what the monkey
will do), and the judges `invariants`, `attempts`, `overlaps`, `recovery`, `flatness`. The rest
touches the world: it starts servers and workers, breaks them, and reads what became of it.
"""
