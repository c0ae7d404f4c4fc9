"""Transforms of sequences of tokens."""

from __future__ import annotations

import re

import numpy as np

from mycelia.dataset import checks
from mycelia.dataset.text.base import TextTransform
from mycelia.dataset.text.vectors import Vectors
from mycelia.dataset.text.vocab import Vocab
from mycelia.dataset.transforms import Transform, compact, numeric
from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import Type, int32


class AddToken(TextTransform):
    """A token before (or behind, without `begin`) each sequence: [N] or [B, N] -> one more."""

    def __init__(self, token, begin=True):
        self.token = checks.kind("AddToken", "token", token, str)
        self.begin = checks.kind("AddToken", "begin", begin, bool)

    def apply(self, array):
        array = self.text_array(array)
        if array.ndim not in (1, 2):
            raise self.refuse(f"takes rank 1 or 2, but got shape {array.shape}")
        more = np.full((*array.shape[:-1], 1), self.token)
        return np.concatenate([more, array] if self.begin else [array, more], axis=-1)


class Lookup(TextTransform):
    """Words as numbers of `data_type`; an unknown word is `unknown_token`, RuntimeError without one."""

    def __init__(self, vocab, unknown_token=None, data_type=int32):
        if unknown_token is not None:
            checks.kind("Lookup", "unknown_token", unknown_token, str)
        self.vocab = checks.kind("Lookup", "vocab", vocab, Vocab)
        if vocab._ids is None:
            raise errors.type_error("Lookup", "vocab is not built")
        self.unknown_token = unknown_token
        self.data_type = checks.kind("Lookup", "data_type", data_type, Type)

    def apply(self, array):
        array, ids, dtype = self.text_array(array), self.vocab._ids, numeric(self.data_type)
        if dtype is None:
            raise self.refuse(f"numbers cannot be {self.data_type}")
        other = None
        if self.unknown_token is not None:
            other = ids.get(self.unknown_token)
            if other is None:
                raise self.refuse(f"unknown_token '{self.unknown_token}' is not in the vocabulary")
        found = [ids.get(w, other) for w in array.ravel().tolist()]
        if None in found:
            word = array.ravel()[found.index(None)]
            raise self.refuse(f"'{word}' is not in the vocabulary, and there is no unknown_token")
        return np.array(found, np.int64).astype(dtype).reshape(array.shape)


class Ngram(TextTransform):
    """Runs of n tokens joined by `separator`, of each n in turn; the pads are (token, how many)."""

    def __init__(self, n, left_pad=("", 0), right_pad=("", 0), separator=" "):
        n = [n] if isinstance(n, int) else n
        if not isinstance(n, list) or not n:
            raise errors.value_error("Ngram", f"n must be positive ints, but got {n!r}")
        for size in n:
            checks.integer("Ngram", "n", size, 1, 2**63)
        for name, pad in (("left_pad", left_pad), ("right_pad", right_pad)):
            right = isinstance(pad, tuple) and len(pad) == 2 and isinstance(pad[0], str)
            if not right or not isinstance(pad[1], int) or pad[1] < 0:
                raise errors.value_error("Ngram", f"{name} must be a tuple (str, count), but got {pad!r}")
        self.n, self.left_pad, self.right_pad = n, left_pad, right_pad
        self.separator = checks.kind("Ngram", "separator", separator, str)

    def apply(self, array):
        array = self.text_array(array)
        if array.ndim != 1:
            raise self.refuse(f"takes rank 1, but got shape {array.shape}")
        out = []
        for n in self.n:
            left = [self.left_pad[0]] * min(self.left_pad[1], n - 1)
            right = [self.right_pad[0]] * min(self.right_pad[1], n - 1)
            tokens = [*left, *array.tolist(), *right]
            runs = [self.separator.join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
            out += runs or [""]
        return np.array(out)


class SlidingWindow(Transform):
    """All runs of `width` elements: [N] -> [N - width + 1, width], [0] where N is too small."""

    def __init__(self, width, axis=0):
        self.width = checks.integer("SlidingWindow", "width", width)
        self.axis = checks.kind("SlidingWindow", "axis", axis, int)

    def apply(self, array):
        if array.ndim != 1 or self.axis not in (0, -1):
            raise self.refuse(f"takes axis 0 of rank 1, but got axis {self.axis} of shape {array.shape}")
        if len(array) < self.width:
            return np.empty(0, array.dtype)
        return np.lib.stride_tricks.sliding_window_view(array, self.width).copy()


_INT = re.compile(r"\s*[+-]?\d+")
_FLOAT = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|\s*[+-]?(inf|infinity|nan)", re.IGNORECASE)


class ToNumber(TextTransform):
    """Texts as numbers; RuntimeError for what is no number or does not fit `data_type`."""

    def __init__(self, data_type):
        found = numeric(checks.kind("ToNumber", "data_type", data_type, Type))
        if found is None or found.kind == "b":
            raise errors.type_error("ToNumber", f"data_type must be numeric, but got {data_type}")
        self.data_type = found

    def apply(self, array):
        array = self.text_array(array)
        whole = self.data_type.kind in "iu"
        out = []
        for text in array.ravel().tolist():
            found = (_INT if whole else _FLOAT).match(text)
            number = None if found is None else int(found[0]) if whole else float(found[0])
            limits = np.iinfo(self.data_type) if whole else np.finfo(self.data_type)
            if number is None or not (
                float(limits.min) <= number <= float(limits.max) or abs(number) == np.inf
            ):
                raise self.refuse(f"{text!r} is no number of {self.data_type}")
            out.append(number)
        return np.array(out, self.data_type).reshape(array.shape)


class ToVectors(TextTransform):
    """Words as vectors: [] -> [dim], [N] -> [N, dim], float32; unknown ones are `unk_init` or zeros.

    With `lower_case_backup` a word that is not there is looked for in lower case.
    """

    def __init__(self, vectors, unk_init=None, lower_case_backup=False):
        self.vectors = checks.kind("ToVectors", "vectors", vectors, Vectors)
        for value in checks.kind("ToVectors", "unk_init", [] if unk_init is None else unk_init, list, tuple):
            checks.kind("ToVectors", "unk_init", value, int, float)
        self.unk_init = list(unk_init or [])
        self.lower_case_backup = checks.kind("ToVectors", "lower_case_backup", lower_case_backup, bool)

    def apply(self, array):
        array = self.text_array(array)
        if self.unk_init and len(self.unk_init) != self.vectors.dim:
            raise self.refuse(f"unk_init has {len(self.unk_init)} numbers, vectors have {self.vectors.dim}")
        unknown = np.array(self.unk_init or [0] * self.vectors.dim, np.float32)
        out = []
        for word in array.ravel().tolist():
            if self.lower_case_backup and not self.vectors.has(word):
                word = word.lower()
            out.append(self.vectors.lookup(word, unknown))
        return out[0].copy() if len(out) == 1 else np.stack(out)


class Truncate(Transform):
    """At most `max_seq_len` elements of the last axis of an array of rank 1 or 2."""

    def __init__(self, max_seq_len):
        self.max_seq_len = checks.integer("Truncate", "max_seq_len", max_seq_len)

    def apply(self, array):
        if array.ndim not in (1, 2):
            raise self.refuse(f"takes rank 1 or 2, but got shape {array.shape}")
        return compact(array[..., : self.max_seq_len])


class TruncateSequencePair(Transform):
    """Two sequences cut to `max_length` elements together: the longer loses first, then the second."""

    inputs = 2

    def __init__(self, max_length):
        self.max_length = max_length

    def apply(self, first, second):
        if first.ndim != 1 or second.ndim != 1:
            raise self.refuse(f"takes rank 1, but got shapes {first.shape} and {second.shape}")
        if not isinstance(self.max_length, int) or self.max_length < 0:
            raise self.refuse(f"max_length must be an int of at least 0, but got {self.max_length!r}")
        a, b = len(first), len(second)
        while a + b > self.max_length:
            a, b = (a - 1, b) if a > b else (a, b - 1)
        return compact(first[:a]), compact(second[:b])


def to_bytes(array, encoding="utf8"):
    """The texts of an array as bytes. ValueError for anything but an array."""
    if not isinstance(array, np.ndarray):
        raise errors.value_error("to_bytes", f"takes a NumPy array, but got {type(array).__name__}")
    return np.char.encode(array, encoding)


def to_str(array, encoding="utf8"):
    """The bytes of an array as texts. TypeError for anything but an array."""
    if not isinstance(array, np.ndarray):
        raise errors.type_error("to_str", f"takes a NumPy array, but got {type(array).__name__}")
    return np.char.decode(array, encoding)
