"""Networks cut into stages, each of which other processes compute, on micro-batches one after another."""
