"""What the commands of `cli` do."""
