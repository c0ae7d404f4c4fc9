"""How near a kernel must come to the reference body: the table of the engine, for tests and plugins."""

from mycelia.engine.base.tolerances import TOLERANCE, tolerance

__all__ = ["TOLERANCE", "tolerance"]
