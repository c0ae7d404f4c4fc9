"""Fusions of the device's unified buffer: the op, and the passes that make it."""

from mycelia_backend_ascend_sim.fusion.passes import FUSIONS, passes

__all__ = ["FUSIONS", "passes"]
