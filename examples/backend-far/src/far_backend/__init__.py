"""A device with memory of its own, and work that waits until it must be done."""
