"""Runs under a folder: finding them, reading their event files into columns, following them."""
