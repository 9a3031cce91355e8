"""The terminal interface of pgq."""
