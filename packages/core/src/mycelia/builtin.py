"""Core's own hook implementations, registered like those of any plugin. Imports nothing heavy at the top."""

from __future__ import annotations

HOOK_API = 1
