"""One file, one way to run the federation: FedAvg, EquFL (Algorithm 2) and every rival."""
