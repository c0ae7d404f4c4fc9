"""Verbose messages: what developers may ask for by number, MindSpore's `VLOG_v`.

The setting `verbose_log` (MYCELIA_VLOG_v, VLOG_v) chooses tags: `n` one, `(a,b)` those from a to b, `(a,)`
those from a on, `(,b)` those up to b. 20000 lists the tags that exist.
"""

from __future__ import annotations

import re

from mycelia.engine.base import errors

LIST = 20000

#: Tag -> what its messages tell. Numbers of MindSpore where it has such messages.
TAGS = {
    10300: "what Print prints and TensorDump writes",
    11000: "what each pass of the compiler does, with its time",
    11001: "functions as they are rewritten before they are captured",
    12901: "compiled functions: instructions and bytes of their arenas",
    12902: "the instructions of compiled functions, each with its types",
    LIST: "the tags that exist",
}


def chosen(text: str) -> frozenset[int]:
    """The tags that `text` asks for; empty text asks for none.  Errors: ValueError for another form."""
    if not text.strip():
        return frozenset()
    single = re.fullmatch(r"\s*\(?\s*(\d+)\s*\)?\s*", text)
    pair = re.fullmatch(r"\s*\(\s*(\d*)\s*,\s*(\d*)\s*\)\s*", text)
    if single:
        low = high = int(single[1])
    elif pair and (pair[1] or pair[2]):
        low, high = int(pair[1] or 0), int(pair[2] or LIST)
    else:
        raise errors.value_error("VLOG_v", f"expected a number n, or (a,b), (a,) or (,b), but got {text!r}")
    return frozenset(tag for tag in TAGS if low <= tag <= high)


def listing() -> list[str]:
    """A line for each tag."""
    return [f"{tag}: {meaning}" for tag, meaning in TAGS.items()]
