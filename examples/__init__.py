"""Applications that use pgq, to read and to copy from; they are not installed with it."""
