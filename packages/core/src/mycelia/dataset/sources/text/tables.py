"""Texts with labels in tables: reviews, news, answers, questions."""

from __future__ import annotations

import csv
import json

import numpy as np

from mycelia.dataset.sources.described import FILES, FILES_WORKERS_LAST, RecordsDataset, text
from mycelia.engine.base import errors


class _TableDataset(RecordsDataset):
    """CSV files 'train.csv' and 'test.csv' without a line of names; every column is text."""

    CHOICES = {"usage": ("train", "test", "all")}
    MEANS = {"usage": "all"}
    ALL = ("test", "train")  # the order of the files for 'all'

    def files(self):
        parts = self.ALL if self.usage == "all" else (self.usage,)
        return [str(self.dataset_dir / f"{part}.csv") for part in parts]

    def read(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            table = csv.reader(file, strict=True)
            for fields in table:
                if len(fields) not in (0, len(self.COLUMNS)):
                    raise errors.runtime_error(
                        type(self).__name__,
                        f"{path}, line {table.line_num}: {len(fields)} fields for the columns {self.COLUMNS}",
                    )
                if fields:
                    yield tuple(map(text, fields))

    def count(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            return sum(1 for fields in csv.reader(file, strict=True) if fields)


class AGNewsDataset(_TableDataset):
    """AG News: columns index, title, description (text). `usage`: 'train', 'test' or 'all'."""

    ARGUMENTS = f"dataset_dir, usage=None, {FILES}"
    COLUMNS = ("index", "title", "description")


class AmazonReviewDataset(_TableDataset):
    """Amazon reviews, full or polarity: columns label, title, content (text). `usage`: 'train', 'test' or
    'all'.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {FILES}"
    COLUMNS = ("label", "title", "content")


class DBpediaDataset(_TableDataset):
    """DBpedia: columns class, title, content (text). `usage`: 'train', 'test' or 'all'."""

    ARGUMENTS = f"dataset_dir, usage=None, {FILES}"
    COLUMNS = ("class", "title", "content")


class SogouNewsDataset(_TableDataset):
    """Sogou News: columns index, title, content (text). `usage`: 'train', 'test' or 'all'."""

    ARGUMENTS = f"dataset_dir, usage=None, {FILES_WORKERS_LAST}"
    COLUMNS = ("index", "title", "content")
    ALL = ("train", "test")


class YahooAnswersDataset(_TableDataset):
    """Yahoo Answers: columns class, title, content, answer (text). `usage`: 'train', 'test' or 'all'."""

    ARGUMENTS = f"dataset_dir, usage=None, {FILES}"
    COLUMNS = ("class", "title", "content", "answer")


class YelpReviewDataset(_TableDataset):
    """Yelp reviews, full or polarity: columns label, text (text). `usage`: 'train', 'test' or 'all'."""

    ARGUMENTS = f"dataset_dir, usage=None, {FILES_WORKERS_LAST}"
    COLUMNS = ("label", "text")
    ALL = ("train", "test")


class SST2Dataset(RecordsDataset):
    """Stanford Sentiment Treebank, the files of GLUE: columns sentence and label (text), for `usage` 'test'
    sentence.

    `usage`: 'train' (default), 'dev' or 'test'. Tabs separate, the first line names the columns.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {FILES}"
    CHOICES = {"usage": ("train", "test", "dev")}
    MEANS = {"usage": "train"}

    def get_col_names(self):
        return ["sentence"] if self.usage == "test" else ["sentence", "label"]

    def files(self):
        return [str(self.dataset_dir / f"{self.usage}.tsv")]

    def read(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            table = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            next(table, None)
            for fields in table:
                if len(fields) != 2:
                    raise errors.runtime_error(
                        "SST2Dataset", f"{path}, line {table.line_num}: {len(fields)} fields instead of two"
                    )
                # Of a test file the first field is a number.
                yield (text(fields[1]),) if self.usage == "test" else tuple(map(text, fields))


class SQuADDataset(RecordsDataset):
    """SQuAD 1.1 and 2.0: columns context, question (text), text (text [n]), answer_start (uint32 [n]).

    `usage`: 'train', 'dev' or 'all'. A question without answers has '' and the largest uint32.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {FILES}"
    COLUMNS = ("context", "question", "text", "answer_start")
    CHOICES = {"usage": ("train", "dev", "all")}
    MEANS = {"usage": "all"}

    def files(self):
        found = []
        for part in ("train", "dev") if self.usage == "all" else (self.usage,):
            paths = [self.dataset_dir / f"{part}-v{version}.json" for version in ("1.1", "2.0")]
            there = [str(path) for path in paths if path.is_file()]
            found += there or [str(paths[0])]
        return found

    def read(self, path):
        try:
            with open(path, encoding="utf-8") as file:
                articles = json.load(file)["data"]
            for article in articles:
                for paragraph in article["paragraphs"]:
                    for asked in paragraph["qas"]:
                        yield self._row(paragraph["context"], asked)
        except (ValueError, KeyError, TypeError) as e:
            raise errors.runtime_error("SQuADDataset", f"{path} does not fit: {e!r}") from None

    def _row(self, context: str, asked: dict) -> tuple:
        answers = asked["answers"] or [{"text": "", "answer_start": -1}]
        starts = np.asarray([answer["answer_start"] for answer in answers], np.int64).astype(np.uint32)
        return text(context), text(asked["question"]), np.asarray([a["text"] for a in answers]), starts
