"""Gradients: one reverse-mode driver and the transforms made from it."""
