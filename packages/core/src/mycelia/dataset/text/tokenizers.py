"""Tokenizers: by characters, whitespace, scripts, regular expressions, and BERT's two steps."""

from __future__ import annotations

import re
import unicodedata

import numpy as np

from mycelia.dataset import checks
from mycelia.dataset.text.base import TextTransform, Tokenizer, pattern, script
from mycelia.dataset.text.clean import NormalizeForm, folded, normalized
from mycelia.dataset.text.vocab import Vocab
from mycelia.dataset.transforms import as_array
from mycelia.engine.base import errors

# Unicode's White_Space; `\s` of Python also takes the separators of information.
_SPACES = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


class PythonTokenizer:
    """A Python function str -> list of str over an array of texts."""

    def __init__(self, tokenizer):
        if not callable(tokenizer):
            raise errors.type_error(
                "PythonTokenizer", f"tokenizer must be callable, but got {type(tokenizer).__name__}"
            )
        self.tokenizer = tokenizer
        self._each = np.vectorize(lambda t: np.array(tokenizer(t), dtype="U"), signature="()->(n)")

    def __call__(self, in_array):
        if not isinstance(in_array, np.ndarray):
            raise errors.type_error(
                "PythonTokenizer", f"takes a NumPy array, but got {type(in_array).__name__}"
            )
        if in_array.dtype.kind == "S":
            in_array = np.char.decode(in_array, "utf8")
        try:
            return self._each(in_array)
        except Exception as cause:
            name = getattr(self.tokenizer, "__name__", type(self.tokenizer).__name__)
            raise errors.runtime_error("PythonTokenizer", f"{name} failed: {cause}") from cause


class UnicodeCharTokenizer(Tokenizer):
    """Each character is a token."""

    def spans(self, text):
        return text, [(i, i + 1) for i in range(len(text))]


class WhitespaceTokenizer(Tokenizer):
    """What stands between whitespace."""

    _words = re.compile(f"[^{_SPACES}]+")

    def spans(self, text):
        return text, [m.span() for m in self._words.finditer(text)]


class UnicodeScriptTokenizer(Tokenizer):
    """Runs of characters of one script; digits and signs are a script, whitespace is dropped or kept."""

    _space = re.compile(f"[{_SPACES}]")

    def __init__(self, keep_whitespace=False, with_offsets=False):
        self.keep_whitespace = checks.kind("UnicodeScriptTokenizer", "keep_whitespace", keep_whitespace, bool)
        super().__init__(with_offsets)

    def spans(self, text):
        runs: list[list] = []  # first, end, script, whether it is whitespace
        for i, char in enumerate(text):
            space, kind = bool(self._space.match(char)), script(char)
            if runs and runs[-1][3] == space and (space or kind in ("Inherited", runs[-1][2])):
                runs[-1][1] = i + 1
            else:
                runs.append([i, i + 1, kind, space])
        return text, [(a, b) for a, b, _, space in runs if self.keep_whitespace or not space]


def _split(expression: re.Pattern, keep: re.Pattern | None, text: str) -> list[tuple[int, int]]:
    spans, last = [], 0
    for match in expression.finditer(text):
        first, end = match.span()
        if first == end:
            continue
        if first > last:
            spans.append((last, first))
        if keep is not None and keep.fullmatch(text, first, end):
            spans.append((first, end))
        last = end
    return [*spans, (last, len(text))] if last < len(text) else spans


class RegexTokenizer(Tokenizer):
    """What stands between matches of `delim_pattern`, and those that `keep_delim_pattern` matches too."""

    def __init__(self, delim_pattern, keep_delim_pattern="", with_offsets=False):
        if delim_pattern is None:
            raise errors.value_error("RegexTokenizer", "delim_pattern is missing")
        self.delim_pattern = checks.kind("RegexTokenizer", "delim_pattern", delim_pattern, str)
        self.keep_delim_pattern = checks.kind("RegexTokenizer", "keep_delim_pattern", keep_delim_pattern, str)
        super().__init__(with_offsets)

    def spans(self, text):
        try:
            keep = pattern(self.keep_delim_pattern) if self.keep_delim_pattern else None
            return text, _split(pattern(self.delim_pattern), keep, text)
        except re.error as cause:
            raise self.refuse(f"{self.delim_pattern!r}, {self.keep_delim_pattern!r}: {cause}") from None


_UNUSED = r"\[CLS\]|\[SEP\]|\[UNK\]|\[PAD\]|\[MASK\]|\[unused\d+\]"
_WORDS_KEPT = re.compile(r"(\[CLS\]|\[SEP\]|\[UNK\]|\[PAD\]|\[MASK\])")
# Signs of ASCII and of Unicode, and the blocks of CJK ideographs: each is a token.
_SIGNS = (
    r"[!-/:-@\[-`{-~\p{P}\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2B73F}"
    r"\x{2B740}-\x{2B81F}\x{2B820}-\x{2CEAF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F}]"
)


class BasicTokenizer(Tokenizer):
    """BERT's first step: words, signs and ideographs; with `lower_case` folded and without accents.

    `preserve_unused_token` keeps [CLS], [SEP], [UNK], [PAD], [MASK] and [unused1] whole.
    """

    def __init__(
        self,
        lower_case=False,
        keep_whitespace=False,
        normalization_form=NormalizeForm.NONE,
        preserve_unused_token=True,
        with_offsets=False,
    ):
        name = type(self).__name__
        self.lower_case = checks.kind(name, "lower_case", lower_case, bool)
        self.keep_whitespace = checks.kind(name, "keep_whitespace", keep_whitespace, bool)
        self.preserve_unused_token = checks.kind(name, "preserve_unused_token", preserve_unused_token, bool)
        self.normalization_form = checks.kind(name, "normalization_form", normalization_form, NormalizeForm)
        super().__init__(with_offsets)

    def _cleaned(self, text: str) -> str:
        if self.lower_case:
            parts = _WORDS_KEPT.split(text) if self.preserve_unused_token else [text]
            text = "".join(t if i % 2 else folded(t) for i, t in enumerate(parts))
            text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        else:
            text = normalized(text, self.normalization_form)
        return "".join(" " if unicodedata.category(c) in ("Cc", "Cf") else c for c in text)

    def spans(self, text):
        text = self._cleaned(text)
        kept = [_UNUSED] if self.preserve_unused_token else []
        delimiters = [*kept, r"\s+", _SIGNS]
        keep = delimiters if self.keep_whitespace else [*kept, _SIGNS]
        return text, _split(pattern("|".join(delimiters)), pattern("|".join(keep)), text)


def _check_pieces(name: str, vocab, suffix_indicator, max_bytes_per_token, unknown_token) -> None:
    if vocab is None:
        raise errors.value_error(name, "vocab is missing")
    checks.kind(name, "vocab", vocab, Vocab)
    checks.kind(name, "suffix_indicator", suffix_indicator, str)
    checks.kind(name, "unknown_token", unknown_token, str)
    checks.integer(name, "max_bytes_per_token", max_bytes_per_token, 0, 2**32 - 1)


class WordpieceTokenizer(TextTransform):
    """Words as the longest pieces that the vocabulary has; later pieces begin with `suffix_indicator`.

    A word that cannot be put together, or is too long, is `unknown_token`; itself if that is empty.
    """

    def __init__(
        self,
        vocab,
        suffix_indicator="##",
        max_bytes_per_token=100,
        unknown_token="[UNK]",
        with_offsets=False,
    ):
        _check_pieces("WordpieceTokenizer", vocab, suffix_indicator, max_bytes_per_token, unknown_token)
        self.vocab, self.suffix_indicator = vocab, suffix_indicator
        self.max_bytes_per_token, self.unknown_token = max_bytes_per_token, unknown_token
        self.with_offsets = checks.kind("WordpieceTokenizer", "with_offsets", with_offsets, bool)

    def _pieces(self, word: str) -> list[tuple[str, int, int]]:
        size = len(word.encode("utf8"))
        unknown = [(self.unknown_token or word, 0, size)]
        if size > self.max_bytes_per_token:  # here the end is counted in what stands for the word
            return [(unknown[0][0], 0, len(unknown[0][0].encode("utf8")))]
        words, out, start, at = self.vocab._built(), [], 0, 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = (self.suffix_indicator if start else "") + word[start:end]
                if piece in words:
                    break
            else:
                return unknown
            size = len(word[start:end].encode("utf8"))
            out.append((piece, at, at + size))
            start, at = end, at + size
        return out

    def pieces(self, words: list[str], starts: list[int]):
        """The pieces of words, and their places counted from `starts` on."""
        out = [(p, s + a, s + b) for w, s in zip(words, starts) for p, a, b in self._pieces(w)]
        tokens, first, end = zip(*(out or [("", 0, 0)]))
        if not self.with_offsets:
            return np.array(tokens)
        return np.array(tokens), np.array(first, np.uint32), np.array(end, np.uint32)

    def apply(self, array):
        array = self.text_array(array)
        if array.ndim > 1:
            raise self.refuse(f"takes rank 0 or 1, but got shape {array.shape}")
        words = array.ravel().tolist()
        return self.pieces(words, [0] * len(words))


class BertTokenizer(TextTransform):
    """BERT's tokens of a text: `BasicTokenizer`, then `WordpieceTokenizer`."""

    def __init__(
        self,
        vocab,
        suffix_indicator="##",
        max_bytes_per_token=100,
        unknown_token="[UNK]",
        lower_case=False,
        keep_whitespace=False,
        normalization_form=NormalizeForm.NONE,
        preserve_unused_token=True,
        with_offsets=False,
    ):
        _check_pieces("BertTokenizer", vocab, suffix_indicator, max_bytes_per_token, unknown_token)
        checks.kind("BertTokenizer", "with_offsets", with_offsets, bool)
        self._basic = BasicTokenizer(
            lower_case, keep_whitespace, normalization_form, preserve_unused_token, with_offsets=True
        )
        self._pieces = WordpieceTokenizer(
            vocab, suffix_indicator, max_bytes_per_token, unknown_token, with_offsets
        )

    def apply(self, array):
        words, starts, _ = self._basic(as_array("BertTokenizer", array))
        return self._pieces.pieces(words.tolist(), starts.tolist())
