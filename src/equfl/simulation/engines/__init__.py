"""One file, one way to train the participants of a round; all must agree with ``serial``."""
