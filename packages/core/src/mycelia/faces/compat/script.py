"""Running a script written for MindSpore, as `python script.py` would."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from mycelia.faces import compat


def run(script: Path, arguments: Sequence[str] = ()) -> None:
    """Run `script` as `__main__`, with `arguments` in `sys.argv` and its folder first in `sys.path`.

    An exception that leaves it ends the process with status 1, and a traceback that begins in the script.
    """
    compat.install()
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    main = ModuleType("__main__")
    main.__file__ = str(script)
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main  # for good: pickles and threads of the script may outlive its last line
    try:
        exec(compile(script.read_bytes(), str(script), "exec"), vars(main))
    except Exception as error:
        own = error.__traceback__
        while own is not None and own.tb_frame.f_code.co_filename != str(script):
            own = own.tb_next
        sys.stdout.flush()
        traceback.print_exception(error.with_traceback(own or error.__traceback__))
        sys.exit(1)
    finally:
        sys.stdout.flush()
