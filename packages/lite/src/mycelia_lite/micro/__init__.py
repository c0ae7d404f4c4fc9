"""Plain C99 of a `.ms` model: weights in flash, one arena of known size, nothing from a heap."""

from __future__ import annotations

from mycelia_lite.micro.generator import Report, generate

__all__ = ["Report", "generate"]
