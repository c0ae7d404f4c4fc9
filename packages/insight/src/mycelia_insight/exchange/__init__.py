"""Runs into other formats and out of them."""
