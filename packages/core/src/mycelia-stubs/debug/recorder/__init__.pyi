# Written by tools/gen_stubs.py.

__all__ = [
    "follow",
]


def follow(path: str) -> None:
    """Switch the recorder on or off as the settings, and the file `path`, say now."""
