"""What is noised before it leaves a client, and how much privacy that gives."""
