"""Many clients on one machine."""
