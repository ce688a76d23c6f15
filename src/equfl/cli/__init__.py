"""One function per command."""
