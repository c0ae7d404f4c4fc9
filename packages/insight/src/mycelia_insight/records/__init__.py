"""Messages of values that are no scalars and of lineage, MindSpore's and TensorBoard's. One module a kind."""
