"""A run as one typed value, and its exact text forms."""
