"""The demonstration that demo.sh runs: orders through pgq, with what goes wrong on a real day."""
