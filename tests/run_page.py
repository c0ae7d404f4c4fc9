"""Runs the code of one page of the docs, in the present directory: `python run_page.py docs/guide.md`.

Blocks of Python share their names, top to bottom. `print(x)  # text` is checked: the text is what it must
print, with newlines read as spaces; `...` stands for anything. A call that ends in `# SomeError: text` must
raise it. A block whose first line is a comment with a file name is that file; `--files` only writes these.
"""

from __future__ import annotations

import builtins
import re
import sys
from pathlib import Path

FENCE = re.compile(r"(?ms)^```(\w+)\n(.*?)^```")
FILE = re.compile(r"^(?:#|//) ([\w./-]+\.(?:py|toml|cc))\s*$")
PROMISE = re.compile(r"^(\s*)(.+?)  # (.+)$")


def blocks(page: Path):
    """(language, line of its first line, source) of every block."""
    text = page.read_text()
    for fence in FENCE.finditer(text):
        yield fence[1], text.count("\n", 0, fence.start(2)) + 1, fence[2]


def agrees(said: str, promised: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in " ".join(promised.split()).split("..."))
    return re.fullmatch(pattern, " ".join(said.split())) is not None


def raising(source: str) -> str:
    """`call  # Error: text` becomes a check that the call raises it."""
    lines = []
    for line in source.split("\n"):
        promise = PROMISE.match(line)
        error = promise and re.match(r"(\w+Error): (.+)$", promise[3])
        if error:
            line = f"{promise[1]}_raises(lambda: {promise[2]}, {error[1]!r}, {error[2]!r})"
        lines.append(line)
    return "\n".join(lines)


def raises(call, name: str, text: str) -> None:
    try:
        call()
    except Exception as error:
        names = {kind.__qualname__ for kind in type(error).__mro__}
        assert name in names, f"{type(error).__name__} was raised, {name} is promised: {error}"
        assert agrees(str(error), text), f"the error says {error}, promised is {text}"
    else:
        raise AssertionError(f"{name} is promised, but nothing was raised")


def write_files(page: Path) -> None:
    """Writes the files that the page shows."""
    for _, _, source in blocks(page):
        file = FILE.match(source.split("\n", 1)[0])
        if file:
            path = Path(file[1])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source)


def run(page: Path) -> None:
    """Runs the page's Python."""
    lines = page.read_text().split("\n")

    def checked_print(*values, **options):
        builtins.print(*values, **options)
        caller = sys._getframe(1)
        if caller.f_code.co_filename == str(page):
            promise = PROMISE.match(lines[caller.f_lineno - 1])
            said = " ".join(str(v) for v in values)
            if promise and not agrees(said, promise[3]):
                raise AssertionError(
                    f"{page.name}:{caller.f_lineno}: prints {said!r}, promised is {promise[3]!r}"
                )

    names = {"__name__": "__main__", "print": checked_print, "_raises": raises}
    for language, line, source in blocks(page):
        if language == "python" and not FILE.match(source.split("\n", 1)[0]):
            padded = "\n" * (line - 1) + raising(source)  # so that tracebacks show the page's lines
            exec(compile(padded, str(page), "exec", dont_inherit=True), names)


if __name__ == "__main__":
    page = Path(sys.argv[1]).resolve()
    if "--files" in sys.argv:
        write_files(page)
    else:
        run(page)
