"""What a client does in a round, as pure functions."""
