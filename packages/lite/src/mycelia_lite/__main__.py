"""The command `mycelia-lite`; also `python -m mycelia_lite`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command of the process's arguments.

    One conversion with plain options leaves out what takes longer than converting a small model: Typer, with
    what it imports, and looking for cycles among objects that are all in use.
    """
    command, *arguments = sys.argv[1:] or [""]
    if command == "convert" and sys.version_info >= (3, 11):  # core's least
        gc.disable()
        from mycelia_lite.commands import conversion

        texts = conversion.plain(arguments)
        if texts is not None and "configFile" not in texts:
            code = conversion.convert(texts)
            gc.freeze()  # nor does the interpreter look for them when it ends
            sys.exit(code)
        gc.enable()
    from mycelia_lite.cli import app

    app()


if __name__ == "__main__":
    main()
