"""Transforms that change each text: case, normal form, regular expressions, markup."""

from __future__ import annotations

import enum
import re
import unicodedata

from mycelia.dataset import checks
from mycelia.dataset.text.base import Elementwise, pattern


class NormalizeForm(enum.IntEnum):
    """Normal forms of Unicode."""

    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4


def normalized(text: str, form: NormalizeForm) -> str:
    """The text in a normal form."""
    return text if form is NormalizeForm.NONE else unicodedata.normalize(form.name, text)


# What has no form of its own: soft hyphens, joiners, marks of direction, selectors of variants.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)


def folded(text: str) -> str:
    """The text for comparisons without regard to case: NFKC with case folding."""
    text = unicodedata.normalize("NFKC", _IGNORABLE.sub("", text)).casefold()
    return unicodedata.normalize("NFKC", text)


class CaseFold(Elementwise):
    """Lower case in the sense of Unicode's case folding, in NFKC."""

    def change(self, text):
        return folded(text)


class NormalizeUTF8(Elementwise):
    """A normal form of Unicode."""

    def __init__(self, normalize_form=NormalizeForm.NFKC):
        self.form = checks.kind("NormalizeUTF8", "normalize_form", normalize_form, NormalizeForm)

    def change(self, text):
        return normalized(text, self.form)


class RegexReplace(Elementwise):
    """Matches of a regular expression replaced; `$1` in `replace` is a group."""

    def __init__(self, pattern, replace, replace_all=True):
        self.pattern = checks.kind("RegexReplace", "pattern", pattern, str)
        self.replace = checks.kind("RegexReplace", "replace", replace, str)
        self.replace_all = checks.kind("RegexReplace", "replace_all", replace_all, bool)

    def _filled(self, match: re.Match) -> str:
        return re.sub(
            r"\\(.)|\$(\d)",
            lambda m: m[1] if m[2] is None else match[int(m[2])] or "",
            self.replace,
            flags=re.DOTALL,
        )

    def change(self, text):
        try:
            return pattern(self.pattern).sub(self._filled, text, count=0 if self.replace_all else 1)
        except (re.error, IndexError) as cause:
            raise self.refuse(f"{self.pattern!r} with {self.replace!r}: {cause}") from None


_DIGITS = "zero one two three four five six seven eight nine".split()
# In this order, and trimmed after each; the real one drops the letter R.
_WIKI = [
    (re.compile(expression), to)
    for expression, to in (
        ("&[^;]*;", " "),
        *((str(i), f" {name} ") for i, name in enumerate(_DIGITS)),
        ("<.*>", ""),
        ("<[^>]*>", ""),
        ("R", ""),
        ("[A-Z]", lambda match: match[0].lower()),
        ("[^a-z\n]+", " "),
        ("\n ", ""),
        (r"\n\s*\n", "n"),
        (r"\s+", " "),
    )
]


class FilterWikipediaXML(Elementwise):
    """The bare words of a dump of Wikipedia: a-z and spaces; redirections become empty."""

    def change(self, text):
        if "#redirect" in text or "#REDIRECT" in text:
            return ""
        for expression, to in _WIKI:
            text = expression.sub(to, text).strip()
        return text
