"""Messages of values that are no scalars, MindSpore's and TensorBoard's. One module a kind."""
