"""Ops that make tensors, rearrange their elements, pick them and write them."""
