"""Ops whose result at a place depends on the elements at that place only, with their gradients."""
