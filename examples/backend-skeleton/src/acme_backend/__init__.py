"""Acme devices as a backend of Mycelia."""
