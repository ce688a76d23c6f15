"""Fair federated learning from the server's side."""
