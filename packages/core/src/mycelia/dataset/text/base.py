"""Bases of the transforms of texts, and regular expressions with Unicode properties."""

from __future__ import annotations

import functools
import re
import sys
import unicodedata

import numpy as np

from mycelia.dataset import checks
from mycelia.dataset.transforms import Transform, is_text


class TextTransform(Transform):
    """A transform of columns of texts: `apply` gets an array of str."""

    def text_array(self, array: np.ndarray) -> np.ndarray:
        """The column as str. RuntimeError if it holds no texts."""
        if not is_text(array):
            raise self.refuse(f"takes texts, but got a column of {array.dtype}")
        return np.char.decode(array, "utf8") if array.dtype.kind == "S" else array


class Elementwise(TextTransform):
    """Base of what changes each text by itself with `change`."""

    def change(self, text: str) -> str:
        """The changed text."""
        raise NotImplementedError(f"{type(self).__name__} does not define change()")

    def apply(self, array):
        array = self.text_array(array)
        return np.array([self.change(t) for t in array.ravel().tolist()], np.str_).reshape(array.shape)


class Tokenizer(TextTransform):
    """Base of the tokenizers of one text; `spans` gives each token with its place.

    The result is the tokens [N]; with `with_offsets` also their first and last byte + 1, uint32 [N]. A text
    without tokens gives one empty token.
    """

    def __init__(self, with_offsets=False):
        self.with_offsets = checks.kind(type(self).__name__, "with_offsets", with_offsets, bool)

    def spans(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """The text as it is tokenized, and where its tokens start and end."""
        raise NotImplementedError(f"{type(self).__name__} does not define spans()")

    def apply(self, array):
        array = self.text_array(array)
        if array.ndim:
            raise self.refuse(f"takes one text, but got an array of shape {array.shape}")
        text, spans = self.spans(str(array))
        tokens = [text[a:b] for a, b in spans]
        if not self.with_offsets:
            return np.array(tokens or [""])
        lengths = np.concatenate([[0], np.cumsum([len(c.encode("utf8", "surrogatepass")) for c in text])])
        starts, ends = [lengths[a] for a, _ in spans] or [0], [lengths[b] for _, b in spans] or [0]
        return np.array(tokens or [""]), np.array(starts, np.uint32), np.array(ends, np.uint32)


# Python knows no scripts of characters, but their names begin with them.
_SCRIPT_OF_NAME = {"CJK": "Han", "IDEOGRAPHIC": "Han", "KANGXI": "Han"}


@functools.lru_cache(maxsize=4096)
def script(char: str) -> str:
    """The script of a character after its name: Latin, Han, Cyrillic, ...; Common for signs and digits."""
    category = unicodedata.category(char)
    if category == "Mn":
        return "Inherited"
    words = unicodedata.name(char, "").split()
    if category[0] not in "LM" and category != "Nl" or not words or words[0] == "MODIFIER":
        return "Common"
    if words[0] in ("FULLWIDTH", "HALFWIDTH") and len(words) > 1:
        words = words[1:]
    return _SCRIPT_OF_NAME.get(words[0], words[0].capitalize())


@functools.lru_cache(maxsize=64)
def _ranges(name: str) -> str:
    """The characters with a property, a general category or a script, as ranges of a class of `re`."""
    short = name.partition("=")[2] or name
    if len(short) <= 2:
        wanted = [unicodedata.category(chr(i)).startswith(short) for i in range(sys.maxunicode + 1)]
    else:
        wanted = [script(chr(i)) == short.capitalize() for i in range(sys.maxunicode + 1)]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wanted, [False]]).astype(np.int8)))
    if not edges.size:
        raise re.error(f"unknown property {name}")
    return "".join(f"\\U{a:08x}-\\U{b - 1:08x}" for a, b in edges.reshape(-1, 2).tolist())


@functools.lru_cache(maxsize=256)
def pattern(text: str) -> re.Pattern:
    r"""A compiled expression; `\p{Han}`, `\P{L}` and `\x{4E00}` are understood too. RuntimeError if wrong."""
    out, inside, i = [], False, 0
    while i < len(text):
        found = re.compile(r"\\([pPx])\{([^}]*)\}").match(text, i)
        if found:
            which, name = found.groups()
            if which == "x":
                out.append(f"\\U{int(name, 16):08x}")
            elif which == "p" and inside:
                out.append(_ranges(name))
            else:
                out.append(f"[{'^' if which == 'P' else ''}{_ranges(name)}]")
            i = found.end()
            continue
        step = 2 if text[i] == "\\" else 1
        inside = (inside or text[i] == "[") and text[i] != "]"
        out.append(text[i : i + step])
        i += step
    return re.compile("".join(out))
