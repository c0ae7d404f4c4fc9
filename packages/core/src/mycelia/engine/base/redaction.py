"""What must not be shown or written: values that a name, a URL or their own form tells to be secret."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

HIDDEN = "(not shown)"
_SHORTEST = 6  # characters of a value that is taken out of texts
# Anywhere in a name, but not in "tokenizer"; and as a word of it, so that "monkey" and "author" stay.
_PART = r"secret|passw|passphrase|credential|cookie|token(?!iz|is)|(?:api|access|private|enc|dec|ssh|sign)key"
_WORD = r"keys?|pass|pwd|pw|session|bearer|o?auth(?:n|z|orization|entication)?"
_SECRET = re.compile(rf"{_PART}|(?<![a-z])(?:{_WORD})(?![a-z])")
_COUNTED = re.compile(r"(?i)(?:tokens|keys|passes)$|^-*(?:num|max|min|n)[_.-]")  # --max-tokens 512
_FLAGS = ("true", "false", "none", "null", "yes", "no")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
_OPTION = re.compile(r"-{0,2}[\w.-]+")
_ASSIGNED = re.compile(
    r"""(?<![\w.-])([\w.-]+)(["']?\s*(?:=(?!=)|:(?!//))\s*)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:(?:bearer|basic)\s+)?[^\s"',;&}]+)""",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^\s/?#]+(?=@)")
# Forms that services give their tokens, and what stands behind the name of a scheme in a header of HTTP.
_FORMS = re.compile(
    r"\b(?:(?:sk|pk|rk)[-_][\w-]{16,}|gh[oprsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{16,}"
    r"|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}|eyJ[\w-]{8,}\.[\w-]+\.[\w-]+)|(?<=\bBearer )[^\s\"']+"
)


def is_secret(name: str, value: Any = "") -> bool:
    """Whether a name says that its value, of an option, a setting or a variable, is secret.

    A `value` that is true, false or none is not, nor a number where the name is of a count (`max_tokens`).
    """
    words = re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", name).lower()  # apiKey, API_KEY
    if not _SECRET.search(words) or str(value).lower() in _FLAGS:
        return False
    return not (_COUNTED.search(name) and _NUMBER.fullmatch(str(value)))


def secrets() -> list[str]:
    """Values of environment variables whose names tell of a secret, longest first; short ones could be any
    word, and a shell's PWD is the folder that it is in.
    """
    found = {
        v for name, v in os.environ.items() if name != "PWD" and is_secret(name, v) and len(v) >= _SHORTEST
    }
    return sorted(found, key=len, reverse=True)


def shown(name: str, value: Any) -> str:
    """The value of a setting for people to read and pass on, as Python writes it; `HIDDEN` for secrets."""
    if value and is_secret(name, value):
        return HIDDEN
    return repr(text(value) if isinstance(value, str) else value)


def text(content: str) -> str:
    """A text without `name=value` and `name: value` of secrets, user and password of URLs, and tokens of
    forms that services are known to give.
    """

    def assigned(found: re.Match) -> str:
        name, between, value = found.groups()
        quote = value[0] if value[0] in "\"'" else ""
        if not is_secret(name, value.strip("\"'")):
            return name + between + (quote + text(value[1:-1]) + quote if quote else text(value))
        return f"{name}{between}{quote}{HIDDEN}{quote}"

    content = _USERINFO.sub(HIDDEN, content)
    return _FORMS.sub(HIDDEN, _ASSIGNED.sub(assigned, content))


def command(words: Sequence[str]) -> list[str]:
    """A command line whose secrets are not shown: `--name=value`, `--name value`, `name=value`, those that
    `text` finds in a word, and values of the environment's secrets.

    What stands alone or behind an option of one letter (`-p`) is shown unless its form tells.
    """
    known = secrets()
    found, follows = [], ""  # the option whose value comes, or, of several ("--api-keys a b"), values
    for word in words:
        name, equals, value = word.partition("=")
        if follows and not (word.startswith("-") and len(word) > 1):
            found.append(word if not is_secret(follows, word) else HIDDEN)
            follows = follows if follows.endswith("s") else ""
            continue
        follows = ""
        if equals and _OPTION.fullmatch(name) and is_secret(name, value):
            found.append(f"{name}={HIDDEN}" if value else word)
            continue
        if word.startswith("-") and not equals and _OPTION.fullmatch(word) and is_secret(word):
            follows = word
        for one in known:
            word = word.replace(one, HIDDEN)
        found.append(text(word))
    return found
