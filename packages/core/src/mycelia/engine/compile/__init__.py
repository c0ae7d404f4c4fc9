"""Compilation of captured graphs: passes, memory plan, executable; `jit` and graph mode."""

from mycelia.engine.compile.jit import jit
from mycelia.engine.compile.mutable import mutable

__all__ = ["jit", "mutable"]
