"""Methods of Tensor that are more than an op with the tensor in front."""
