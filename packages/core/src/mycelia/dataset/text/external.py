"""Tokenizers of other libraries: jieba for Chinese and SentencePiece; optional packages."""

from __future__ import annotations

import enum
import importlib
import io
import os

import numpy as np

from mycelia.dataset import checks
from mycelia.dataset.text.base import TextTransform, Tokenizer
from mycelia.engine.base import errors
from mycelia.io.files import atomic_write
from mycelia.io.reading import of_file


def _package(op: str, name: str):
    try:
        return importlib.import_module(name)
    except ImportError as cause:
        raise errors.error(
            errors.MyceliaImportError, op, f"needs the package {name}: {cause}", hint=f"pip install {name}"
        ) from None


class JiebaMode(enum.IntEnum):
    """How `JiebaTokenizer` cuts: both ways, by the dictionary, or by the model of characters."""

    MIX = 0
    MP = 1
    HMM = 2


class SentencePieceModel(enum.IntEnum):
    """Kinds of models of SentencePiece."""

    UNIGRAM = 0
    BPE = 1
    CHAR = 2
    WORD = 3


class SPieceTokenizerLoadType(enum.IntEnum):
    """Where the model comes from: a file or a `SentencePieceVocab`."""

    FILE = 0
    MODEL = 1


class SPieceTokenizerOutType(enum.IntEnum):
    """Tokens as texts or numbers."""

    STRING = 0
    INT = 1


class JiebaTokenizer(Tokenizer):
    """Chinese words by the package jieba; `mp_path` is its dictionary, its model of characters its own."""

    def __init__(self, hmm_path, mp_path, mode=JiebaMode.MIX, with_offsets=False):
        for name, path in (("hmm_path", hmm_path), ("mp_path", mp_path)):
            if path is None:
                raise errors.value_error("JiebaTokenizer", f"{name} is missing")
            checks.kind("JiebaTokenizer", name, path, str)
        super().__init__(with_offsets)
        self.mode = checks.kind("JiebaTokenizer", "mode", mode, JiebaMode)
        for path in (hmm_path, mp_path):
            if not os.path.exists(path):
                raise errors.value_error("JiebaTokenizer", f"there is no file '{path}'")
        self.hmm_path, self.mp_path = hmm_path, mp_path
        self.words: list[tuple[str, int]] = []
        self._cutter = None

    def add_word(self, word, freq=None):
        """One more word."""
        if word is None:
            raise errors.value_error("JiebaTokenizer.add_word", "word is missing")
        if freq is not None:
            checks.integer("JiebaTokenizer.add_word", "freq", freq, 0, 2**32 - 1)
        self.words.append((word, freq or 0))
        self._cutter = None

    def add_dict(self, user_dict):
        """More words: a dict word -> frequency, or a file with a word and perhaps a frequency per line."""
        if isinstance(user_dict, dict):
            for word, freq in user_dict.items():
                self.add_word(word, freq)
            return
        if not os.path.exists(checks.kind("JiebaTokenizer.add_dict", "user_dict", user_dict, str, dict)):
            raise errors.value_error("JiebaTokenizer.add_dict", f"there is no file '{user_dict}'")
        owner = "JiebaTokenizer.add_dict"
        with of_file(user_dict, owner), open(user_dict, encoding="utf-8-sig") as file:
            for line in file:
                parts = line.split()
                if len(parts) == 1 or len(parts) == 2 and parts[1].isdecimal():
                    self.add_word(parts[0], int(parts[1]) if len(parts) == 2 else None)

    def _cut(self, text: str):
        if self.mode is JiebaMode.HMM:
            return _package("JiebaTokenizer", "jieba.finalseg").cut(text)
        if self._cutter is None:
            self._cutter = _package("JiebaTokenizer", "jieba").Tokenizer(self.mp_path)
            for word, freq in self.words:
                self._cutter.add_word(word, freq or None)
        return self._cutter.cut(text, HMM=self.mode is JiebaMode.MIX)

    def spans(self, text):
        spans, at = [], 0
        for word in self._cut(text):
            spans.append((at, at + len(word)))
            at += len(word)
        return text, spans


class SentencePieceVocab:
    """A trained model of SentencePiece; made by `from_dataset` or `from_file`."""

    def __init__(self):
        self.model = b""

    @staticmethod
    def _check(vocab_size, character_coverage, model_type, params) -> dict:
        name = "SentencePieceVocab"
        checks.integer(name, "vocab_size", vocab_size, 0, 2**32 - 1)
        checks.kind(name, "character_coverage", character_coverage, float)
        checks.kind(name, "model_type", model_type, str, SentencePieceModel)
        kind = model_type.name if isinstance(model_type, SentencePieceModel) else model_type
        return {
            "vocab_size": vocab_size,
            "character_coverage": character_coverage,
            "model_type": kind.lower(),
            **checks.kind(name, "params", params or {}, dict),
        }

    @classmethod
    def _train(cls, **arguments) -> SentencePieceVocab:
        library, out, made = _package("SentencePieceVocab", "sentencepiece"), io.BytesIO(), cls()
        library.SentencePieceTrainer.train(model_writer=out, minloglevel=2, **arguments)
        made.model = out.getvalue()
        return made

    @classmethod
    def from_dataset(cls, dataset, col_names, vocab_size, character_coverage, model_type, params):
        """Trained on text columns of a dataset."""
        options = cls._check(vocab_size, character_coverage, model_type, params)
        rows = dataset.create_dict_iterator(num_epochs=1, output_numpy=True)
        sentences = (str(t) for row in rows for c in col_names or row for t in np.ravel(row[c]))
        return cls._train(sentence_iterator=iter(sentences), **options)

    @classmethod
    def from_file(cls, file_path, vocab_size, character_coverage, model_type, params):
        """Trained on a list of text files."""
        checks.kind("SentencePieceVocab", "file_path", file_path, list)
        options = cls._check(vocab_size, character_coverage, model_type, params)
        return cls._train(input=",".join(file_path), **options)

    @classmethod
    def save_model(cls, vocab, path, filename):
        """Write the model into a folder."""
        checks.kind("SentencePieceVocab.save_model", "vocab", vocab, SentencePieceVocab)
        checks.kind("SentencePieceVocab.save_model", "path", path, str)
        checks.kind("SentencePieceVocab.save_model", "filename", filename, str)
        with atomic_write(os.path.join(path, filename)) as file:
            file.write(vocab.model)


class SentencePieceTokenizer(TextTransform):
    """Pieces of a text, as texts or int32, by a model: a file's path or a `SentencePieceVocab`."""

    def __init__(self, mode, out_type):
        self.mode = checks.kind("SentencePieceTokenizer", "mode", mode, str, SentencePieceVocab)
        self.out_type = checks.kind("SentencePieceTokenizer", "out_type", out_type, SPieceTokenizerOutType)
        self._processor = None

    def apply(self, array):
        array = self.text_array(array)
        if array.ndim:
            raise self.refuse(f"takes one text, but got an array of shape {array.shape}")
        if self._processor is None:
            made = _package("SentencePieceTokenizer", "sentencepiece").SentencePieceProcessor()
            if isinstance(self.mode, str):
                made.Load(self.mode)
            else:
                made.LoadFromSerializedProto(self.mode.model)
            self._processor = made
        if self.out_type is SPieceTokenizerOutType.INT:
            return np.array(self._processor.EncodeAsIds(str(array)), np.int32)
        return np.array(self._processor.EncodeAsPieces(str(array)))
