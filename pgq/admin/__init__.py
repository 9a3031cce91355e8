"""What an operator looks at and does: one verb a file, the same for command line and TUI.

A verb takes an open connection and gives typed rows. It neither prints nor asks.
"""
