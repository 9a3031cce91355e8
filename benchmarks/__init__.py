"""Benchmarks: pgq beside a bare loop in the same run, as ratios. `python -m benchmarks`."""
