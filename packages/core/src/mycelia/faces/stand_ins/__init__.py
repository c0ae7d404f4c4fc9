"""Devices as scripts ask for them, in whose place the host stands, and processes that work together."""
