"""One file, one notion of fairness: its metric and its differentiable loss, side by side; and the audit of a model."""
