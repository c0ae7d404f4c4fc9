"""Texts as they are: lines of language models, reviews in single files, words with tags."""

from __future__ import annotations

import numpy as np

from mycelia.dataset.sources.described import (
    FILES,
    FILES_WORKERS_LAST,
    MAPPED,
    LabelledDataset,
    RecordsDataset,
    contents,
    lines,
    text,
)
from mycelia.engine.base import errors

_PARTS = ("train", "test", "valid", "all")


class EnWik9Dataset(RecordsDataset):
    """EnWik9, the first 10^9 bytes of a dump of Wikipedia: column text, every line of the file 'enwik9'."""

    ARGUMENTS = f"dataset_dir, {FILES.replace('shuffle=GLOBAL', 'shuffle=True')}"
    COLUMNS = ("text",)

    def files(self):
        return [str(self.dataset_dir / "enwik9")]

    def read(self, path):
        for line in lines(path, empty=True):
            yield (text(line),)

    def count(self, path):
        return sum(1 for _ in lines(path, empty=True))


class _LinesDataset(RecordsDataset):
    """Lines, without empty ones, of a file per part."""

    COLUMNS = ("text",)
    CHOICES = {"usage": _PARTS}
    MEANS = {"usage": "all"}
    FILE = ""

    def files(self):
        parts = ("test", "train", "valid") if self.usage == "all" else (self.usage,)
        return [str(self.dataset_dir / self.FILE.format(part)) for part in parts]

    def read(self, path):
        for line in lines(path):
            yield (text(line),)

    def count(self, path):
        return sum(1 for _ in lines(path))


class PennTreebankDataset(_LinesDataset):
    """Penn Treebank, 'ptb.<usage>.txt': column text. `usage`: 'train', 'test', 'valid' or 'all'."""

    ARGUMENTS = f"dataset_dir, usage=None, {FILES}"
    FILE = "ptb.{}.txt"


class WikiTextDataset(_LinesDataset):
    """WikiText-2 and -103, 'wiki.<usage>.tokens': column text. `usage`: 'train', 'test', 'valid' or 'all'."""

    ARGUMENTS = f"dataset_dir, usage=None, {FILES}"
    FILE = "wiki.{}.tokens"


class IMDBDataset(LabelledDataset):
    """IMDb reviews, a file each in '<usage>/pos' and '<usage>/neg': columns text and label (int32 []), 1 for
    'pos'.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {MAPPED}"
    COLUMNS = ("text", "label")
    CHOICES = {"usage": ("train", "test", "all")}
    MEANS = {"usage": "all"}

    def entries(self):
        parts = ("train", "test") if self.usage == "all" else (self.usage,)
        return [
            (path, label)
            for part in parts
            for kind, label in (("pos", 1), ("neg", 0))
            for path in sorted((self.dataset_dir / part / kind).iterdir())
            if path.suffix == ".txt"
        ]

    def read(self, entry):
        path, label = entry
        return text(contents(path).rstrip("\n")), np.asarray(label, np.int32)


class _TaggedDataset(RecordsDataset):
    """Sentences between empty lines, a word with two tags per line: three columns of text [n]."""

    MEANS = {"usage": "all"}
    SEPARATOR = " "

    def read(self, path):
        words: list[list[str]] = []
        for line in [*lines(path, empty=True), ""]:
            line = line.strip(" ")
            if line:
                fields = line.split(self.SEPARATOR)
                if len(fields) < 3:
                    raise errors.runtime_error(
                        type(self).__name__, f"{path}: {line!r} is no word with two tags"
                    )
                words.append(fields[:3])
            elif words:
                yield tuple(np.asarray(column) for column in zip(*words))
                words = []


class CoNLL2000Dataset(_TaggedDataset):
    """CoNLL-2000's chunks: columns word, pos_tag, chunk_tag (text [n]). `usage`: 'train', 'test' or 'all'."""

    ARGUMENTS = f"dataset_dir, usage=None, {FILES_WORKERS_LAST}"
    COLUMNS = ("word", "pos_tag", "chunk_tag")
    CHOICES = {"usage": ("train", "test", "all")}

    def files(self):
        parts = ("test", "train") if self.usage == "all" else (self.usage,)
        return [str(self.dataset_dir / f"{part}.txt") for part in parts]


class UDPOSDataset(_TaggedDataset):
    """Universal Dependencies' parts of speech: columns word, universal, stanford (text [n]).

    `usage`: 'train', 'test', 'valid' or 'all', files 'en-ud-tag.v2.<train, test, dev>.txt'.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {FILES_WORKERS_LAST}"
    COLUMNS = ("word", "universal", "stanford")
    CHOICES = {"usage": _PARTS}
    SEPARATOR = "\t"

    def files(self):
        parts = ("valid", "test", "train") if self.usage == "all" else (self.usage,)
        names = [part.replace("valid", "dev") for part in parts]
        return [str(self.dataset_dir / f"en-ud-tag.v2.{name}.txt") for name in names]
