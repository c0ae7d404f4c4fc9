"""Mycelia: tensors, gradients, graphs and training, as MindSpore users know them."""
