# Written by tools/gen_stubs.py.
from mycelia.engine.backends.base import Backend as Backend, Pass as Pass, include_dir as include_dir

__all__ = [
    "Backend", "Pass", "include_dir",
]
