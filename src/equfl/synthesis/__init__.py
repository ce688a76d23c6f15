"""One file, one way in which the server gets data of its own (the paper's Algorithm 1)."""
