"""The text interface of ``mycelia-debug``: commands over a dump, in a terminal or one at a time."""
