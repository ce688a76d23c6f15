"""A federation whose model treats groups alike."""
