"""How a pipeline is read: iterators, who computes the rows, their random numbers, tuning, fusion."""
