"""The command line of pgq."""
