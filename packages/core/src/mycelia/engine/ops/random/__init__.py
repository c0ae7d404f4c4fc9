"""Random tensors: distributions, the draws below them, and the streams of keys that they take."""
