"""One file, one rule that turns the clients' updates into one (the paper's GAR)."""
