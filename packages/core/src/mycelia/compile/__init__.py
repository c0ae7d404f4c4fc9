"""Compilation of captured graphs: passes, memory plan, executable; `jit` and graph mode."""

from mycelia.compile.jit import jit

__all__ = ["jit"]
