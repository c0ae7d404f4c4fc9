"""Compilation of captured graphs: passes, memory plan, executable; `jit` and graph mode."""

from mycelia.compile.jit import jit
from mycelia.compile.mutable import mutable

__all__ = ["jit", "mutable"]
