"""Spreads requests over workers, in this process or in others, and keeps those workers alive."""
