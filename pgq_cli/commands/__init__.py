"""The commands, a module each; what a command needs is imported when it runs."""
