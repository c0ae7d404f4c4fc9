"""Word vectors read from files, and their lookup."""

from __future__ import annotations

import os

import numpy as np

from mycelia.dataset import checks
from mycelia.engine.base import errors
from mycelia.io.reading import of_file


class Vectors:
    """Vectors of words, from a file with a word and its numbers per line."""

    def __init__(self):
        self.words: dict[str, np.ndarray] = {}
        self.dim = 0

    @classmethod
    def _check_name(cls, file_path: str) -> None:
        """RuntimeError where this kind of file has another name."""

    @classmethod
    def from_file(cls, file_path, max_vectors=None):
        """The vectors of a file, the first `max_vectors` of them; a line of counts at its top is skipped."""
        name = f"{cls.__name__}.from_file"
        checks.kind(name, "file_path", file_path, str)
        base = os.path.basename(os.path.realpath(file_path))
        if set(base) & set("\\/:*?\"<>|`&';") or base != base.strip(" "):
            raise errors.value_error(name, f"file_path has a name that is not taken: '{base}'")
        if max_vectors is not None:
            checks.integer(name, "max_vectors", max_vectors, 0)
        cls._check_name(file_path)
        made = cls()
        try:
            with of_file(file_path, name), open(file_path, encoding="utf8") as file:
                for i, line in enumerate(file):
                    parts = line.split()
                    if not parts or (i == 0 and len(parts) == 2):
                        continue
                    if max_vectors and len(made.words) >= max_vectors:
                        break
                    made._add(name, parts, i + 1)
        except OSError as cause:
            raise errors.runtime_error(name, f"cannot read '{file_path}': {cause.strerror}") from None
        if not made.words:
            raise errors.runtime_error(name, f"invalid file, file is empty. '{file_path}' holds no vectors")
        return made

    def _add(self, name: str, parts: list[str], line: int) -> None:
        try:
            vector = np.array(parts[1:], np.float32)
        except ValueError:
            raise errors.runtime_error(name, f"line {line} holds what is no number") from None
        if self.dim and len(vector) != self.dim or not len(vector):
            raise errors.runtime_error(
                name,
                f"all vectors must have the same number of dimensions, but got dim {len(vector)} while "
                f"expecting {self.dim} (line {line})",
            )
        self.dim = len(vector)
        self.words.setdefault(parts[0], vector)

    def lookup(self, word: str, unknown: np.ndarray) -> np.ndarray:
        """The vector of a word."""
        return self.words.get(word, unknown)

    def has(self, word: str) -> bool:
        """Whether the word has a vector."""
        return word in self.words


class GloVe(Vectors):
    """Vectors of GloVe: the file is called glove.*.txt."""

    @classmethod
    def _check_name(cls, file_path):
        base = os.path.basename(file_path)
        if not (base.startswith("glove.") and base.endswith(".txt")):
            raise errors.runtime_error(
                "GloVe.from_file", f"the file must be called glove.*.txt, not '{base}'"
            )


class FastText(Vectors):
    """Vectors of fastText: the file is called *.vec."""

    @classmethod
    def _check_name(cls, file_path):
        if not file_path.endswith(".vec"):
            raise errors.runtime_error("FastText.from_file", f"the file must end in .vec: '{file_path}'")


class CharNGram(Vectors):
    """Vectors of the 2, 3 and 4 characters in a row of words; a word's vector is their mean."""

    def _parts(self, word: str) -> list[np.ndarray]:
        chars = ["#BEGIN#", *word, "#END#"]
        keys = [f"{n}gram-{''.join(chars[i : i + n])}" for n in (2, 3, 4) for i in range(len(chars) - n + 1)]
        return [self.words[k] for k in keys if k in self.words]

    def has(self, word):
        return bool(self._parts(word))

    def lookup(self, word, unknown):
        parts = self._parts(word)
        return np.mean(parts, axis=0, dtype=np.float32) if parts else unknown
