"""A vocabulary: words and their numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mycelia.dataset import checks
from mycelia.engine.base import errors
from mycelia.io.reading import of_file


def _unique(name: str, words) -> list[str]:
    checks.kind("Vocab", name, words, list)
    for word in words:
        checks.kind("Vocab", name, word, str)
    if len(set(words)) < len(words):
        twice = next(w for w, n in Counter(words).items() if n > 1)
        raise errors.value_error("Vocab", f"{name} contains '{twice}' twice")
    return words


class Vocab:
    """Words and their numbers; made by `from_dataset`, `from_list`, `from_file` or `from_dict`."""

    def __init__(self):
        self._ids: dict[str, int] | None = None
        self._words: dict[int, str] = {}

    @classmethod
    def _of(cls, ids: dict[str, int]) -> Vocab:
        made = cls()
        made._ids, made._words = ids, {i: w for w, i in ids.items()}
        return made

    @classmethod
    def _joined(cls, words, special, special_first: bool) -> Vocab:
        both = set(words) & set(special)
        if both:
            raise errors.runtime_error("Vocab", f"special_tokens and words share {sorted(both)}")
        ordered = [*special, *words] if special_first else [*words, *special]
        return cls._of({w: i for i, w in enumerate(ordered)})

    @classmethod
    def from_dataset(
        cls, dataset, columns=None, freq_range=None, top_k=None, special_tokens=None, special_first=True
    ) -> Vocab:
        """The words of text columns, the most frequent first, equally frequent ones in order.

        Only words whose count lies in `freq_range` (both ends count, None is open), and only `top_k`.
        """
        columns = [columns] if isinstance(columns, str) else columns
        for column in checks.kind("Vocab.from_dataset", "columns", columns or [], list, tuple):
            checks.kind("Vocab.from_dataset", "columns", column, str)
        low, high = cls._bounds(freq_range)
        if top_k is not None:
            checks.integer("Vocab.from_dataset", "top_k", top_k, 1, 2**63)
        checks.kind("Vocab.from_dataset", "special_first", special_first, bool)
        special = _unique("special_tokens", special_tokens or [])
        names = dataset.get_col_names()
        if set(columns or names) - set(names):
            raise errors.runtime_error("Vocab.from_dataset", f"columns {columns} are not among {names}")
        picked = [names.index(c) for c in columns or names]
        count: Counter = Counter()
        for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True):
            for i in picked:
                array = np.asarray(row[i])
                if array.dtype.kind not in "US":
                    raise errors.runtime_error(
                        "Vocab.from_dataset", f"column '{names[i]}' holds {array.dtype}, not texts"
                    )
                array = np.char.decode(array, "utf8") if array.dtype.kind == "S" else array
                count.update(array.ravel().tolist())
        words = sorted((w for w, n in count.items() if low <= n <= high), key=lambda w: (-count[w], w))
        return cls._joined(words[:top_k], special, special_first)

    @staticmethod
    def _bounds(freq_range) -> tuple[float, float]:
        if freq_range is None:
            return 0, float("inf")
        checks.kind("Vocab.from_dataset", "freq_range", freq_range, tuple)
        if len(freq_range) != 2 or any(n is not None and not isinstance(n, int) for n in freq_range):
            raise errors.value_error(
                "Vocab.from_dataset", f"freq_range must be two ints or None, but got {freq_range}"
            )
        low, high = (d if n is None else n for n, d in zip(freq_range, (0, float("inf"))))
        if not 0 <= low <= high:
            raise errors.value_error(
                "Vocab.from_dataset", f"freq_range must be 0 <= low <= high, but got {freq_range}"
            )
        return low, high

    @classmethod
    def from_list(cls, word_list, special_tokens=None, special_first=True) -> Vocab:
        """Words in the order of the list, special tokens before or behind them."""
        words = _unique("word_list", word_list)
        special = [] if special_tokens is None else _unique("special_tokens", special_tokens)
        if set(words) & set(special):
            raise errors.value_error(
                "Vocab.from_list", f"special_tokens and word_list share {sorted(set(words) & set(special))}"
            )
        checks.kind("Vocab.from_list", "special_first", special_first, bool)
        return cls._joined(words, special, special_first)

    @classmethod
    def from_file(
        cls, file_path, delimiter="", vocab_size=None, special_tokens=None, special_first=True
    ) -> Vocab:
        """A word per line, up to the delimiter if there is one; the first `vocab_size` of them."""
        special = [] if special_tokens is None else _unique("special_tokens", special_tokens)
        checks.kind("Vocab.from_file", "file_path", file_path, str)
        checks.kind("Vocab.from_file", "delimiter", delimiter, str)
        if vocab_size is not None:
            checks.integer("Vocab.from_file", "vocab_size", vocab_size, 1, 2**63)
        checks.kind("Vocab.from_file", "special_first", special_first, bool)
        try:
            with of_file(file_path, "Vocab.from_file"), open(file_path, encoding="utf8") as file:
                lines = file.read().splitlines()
        except OSError as cause:
            raise errors.runtime_error(
                "Vocab.from_file", f"cannot read '{file_path}': {cause.strerror}"
            ) from None
        words = [line.partition(delimiter)[0] if delimiter else line for line in lines]
        words = [w.strip() for w in words][:vocab_size]
        twice = [w for w, n in Counter(words).items() if n > 1]
        if twice:
            raise errors.runtime_error("Vocab.from_file", f"'{file_path}' contains {twice[0]!r} twice")
        return cls._joined(words, special, special_first)

    @classmethod
    def from_dict(cls, word_dict) -> Vocab:
        """The words with the numbers of a dict."""
        for word, number in checks.kind("Vocab.from_dict", "word_dict", word_dict, dict).items():
            checks.kind("Vocab.from_dict", "word", word, str)
            checks.integer("Vocab.from_dict", "word_id", number, 0)
        return cls._of(dict(word_dict))

    def _built(self) -> dict[str, int]:
        if self._ids is None:
            raise errors.runtime_error(
                "Vocab", "is not built: use from_dataset, from_list, from_file, from_dict"
            )
        return self._ids

    def vocab(self) -> dict[str, int]:
        """All words and their numbers."""
        return dict(self._built())

    def tokens_to_ids(self, tokens):
        """The numbers of words, -1 for unknown ones; one int for one word."""
        ids = self._built()
        if isinstance(checks.kind("Vocab.tokens_to_ids", "tokens", tokens, str, list, np.ndarray), str):
            tokens = [tokens]
        tokens = np.atleast_1d(tokens) if isinstance(tokens, np.ndarray) else tokens
        for token in tokens:
            checks.kind("Vocab.tokens_to_ids", "tokens", token, str)
        found = [ids.get(str(t), -1) for t in tokens]
        return found[0] if len(found) == 1 else found

    def ids_to_tokens(self, ids):
        """The words of numbers, '' for unknown ones; one str for one number."""
        self._built()
        if isinstance(checks.kind("Vocab.ids_to_tokens", "ids", ids, int, list, np.ndarray), int):
            ids = [ids]
        ids = np.atleast_1d(ids) if isinstance(ids, np.ndarray) else ids
        for number in ids:
            checks.between(
                "Vocab.ids_to_tokens", "ids", checks.kind("Vocab", "ids", number, int, np.integer), 0,
                checks.INT32_MAX,
            )  # fmt: skip
        found = [self._words.get(int(i), "") for i in ids]
        return found[0] if len(found) == 1 else found
