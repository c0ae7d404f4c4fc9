"""Calls by family of operators."""
