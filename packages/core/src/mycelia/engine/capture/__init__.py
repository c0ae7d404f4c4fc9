"""Capture: Python code to graphs, by rewriting its syntax tree and running it on tensors without data."""
