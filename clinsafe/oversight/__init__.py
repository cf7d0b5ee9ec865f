"""What people need to look after a guard in use: the decision log."""
