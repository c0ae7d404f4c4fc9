"""The engine: ops, tensors, gradients, graphs, compiler, backends. It imports nothing that stands on it."""
