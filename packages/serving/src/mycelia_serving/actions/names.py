"""What several commands take: names of servables, tokens."""

from __future__ import annotations


def split_name(text: str) -> tuple[str, int]:
    """NAME or NAME:VERSION. Errors: RuntimeError."""
    name, colon, number = text.partition(":")
    if not name or (colon and not number.isdecimal()):
        raise RuntimeError(f"a servable is NAME or NAME:VERSION, got {text!r}")
    return name, int(number or 0)


def split_target(text: str) -> tuple[str, int]:
    """NAME=COUNT. Errors: RuntimeError."""
    name, equals, count = text.partition("=")
    if not name or not equals or not count.isdecimal():
        raise RuntimeError(f"what to scale is NAME=COUNT, got {text!r}")
    return name, int(count)


def secret(name: str, options: dict) -> str | None:
    """A token that was given as it is, or in a file, which other users do not see. Errors: RuntimeError."""
    path = options[f"{name}_file"]
    if not path:
        return options[name] or None
    option = name.replace("_", "-")
    if options[name]:
        raise RuntimeError(f"--{option} and --{option}-file are given both")
    try:
        with open(path, encoding="utf-8") as file:
            found = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RuntimeError(f"--{option}-file {path} cannot be read: {error}") from None
    if not found:
        raise RuntimeError(f"--{option}-file {path} is empty")
    return found
