"""Texts with their translations: Multi30k and the talks of IWSLT."""

from __future__ import annotations

from itertools import permutations
from xml.etree import ElementTree

from mycelia.dataset import nodes
from mycelia.dataset.sources.described import FILES, FILES_WORKERS_LAST, RecordsDataset, lines, text
from mycelia.engine.base import errors


class _PairsDataset(RecordsDataset):
    """Rows of two files, one per language."""

    COLUMNS = ("text", "translation")
    CHOICES = {"usage": ("train", "test", "valid", "all")}
    MEANS = {"usage": "all"}
    PAIRS: tuple[str, ...] = ()

    def check(self):
        owner = type(self).__name__
        if self.language_pair is None:
            self.language_pair = self.PAIRS[0].split()
        nodes.of_type(owner, "language_pair", self.language_pair, list, tuple)
        if " ".join(map(str, self.language_pair)) not in self.PAIRS:
            raise errors.value_error(
                owner,
                f"language_pair can only be {' or '.join(str(p.split()) for p in self.PAIRS)}, but got "
                f"{self.language_pair!r}",
            )

    def read(self, path):
        first, second = self._texts(path[0]), self._texts(path[1])
        for one, other in zip(first, second):
            yield text(one), text(other)

    def _texts(self, path: str):
        return lines(path)


class Multi30kDataset(_PairsDataset):
    """Multi30k: columns text and translation, lines of '<name>.en' and '<name>.de' that belong together."""

    ARGUMENTS = (
        f"dataset_dir, usage=None, language_pair=None, {FILES.replace('shuffle=GLOBAL', 'shuffle=None')}"
    )
    PAIRS = ("en de", "de en")
    _FILES = {"train": "training/train", "valid": "validation/val", "test": "mmt16_task1_test/test"}

    def files(self):
        parts = ("test", "train", "valid") if self.usage == "all" else (self.usage,)
        names = [str(self.dataset_dir / self._FILES[part]) for part in parts]
        return [tuple(f"{name}.{language}" for language in self.language_pair) for name in names]


# Lines of a training file that tell about the talk and are no text.
_TAGS = (
    "<url",
    "<keywords",
    "<talkid",
    "<description",
    "<reviewer",
    "<translator",
    "<title",
    "<speaker",
    "<doc",
    "</doc",
)


class _TalksDataset(_PairsDataset):
    """TED talks of an IWSLT year: text files with tags for training, XML for validation and test."""

    YEAR = ""

    def _folder(self) -> str:
        raise errors.error(errors.NotSupportedError, type(self).__name__, "_folder() is not defined")

    def _sets(self) -> dict[str, str]:
        raise errors.error(errors.NotSupportedError, type(self).__name__, "_sets() is not defined")

    def files(self):
        pair = "-".join(self.language_pair)
        folder = self.dataset_dir / "texts" / self._folder()
        names = {"train": f"train.tags.{pair}.{{}}"} | {
            part: f"IWSLT{self.YEAR}.TED.{name}.{pair}.{{}}.xml" for part, name in self._sets().items()
        }
        parts = ("train", "valid", "test") if self.usage == "all" else (self.usage,)
        return [tuple(str(folder / names[part].format(l)) for l in self.language_pair) for part in parts]

    def read(self, path):
        if path[0].endswith(".xml"):
            yield from super().read(path)
            return
        for one, other in zip(*(lines(p, empty=True) for p in path)):
            if not any(tag in one or tag in other for tag in _TAGS) and (one or other):
                yield text(one.strip(" ")), text(other.strip(" "))

    def _texts(self, path):
        try:
            root = ElementTree.parse(path).getroot()
        except ElementTree.ParseError as e:
            raise errors.runtime_error(type(self).__name__, f"{path} is no XML: {e}") from None
        if root.find("*/doc") is None:
            raise errors.runtime_error(type(self).__name__, f"{path} has no doc")
        return ((segment.text or "").strip(" ") for segment in root.iterfind("*/doc/seg"))


_SETS = ("dev2010", "tst2010", "tst2011", "tst2012", "tst2013", "tst2014")


class IWSLT2016Dataset(_TalksDataset):
    """IWSLT 2016: columns text and translation. `usage`: 'train', 'valid', 'test' or 'all'; `language_pair`:
    two of en, de, fr, cs, ar, one of them en; `valid_set`, `test_set`: the years of the talks.
    """

    ARGUMENTS = (
        f"dataset_dir, usage=None, language_pair=None, valid_set=None, test_set=None, {FILES_WORKERS_LAST}"
    )
    CHOICES = _PairsDataset.CHOICES | {"valid_set": _SETS, "test_set": _SETS}
    MEANS = {"usage": "all", "valid_set": "tst2013", "test_set": "tst2014"}
    PAIRS = ("de en", "en de", "en fr", "fr en", "en cs", "cs en", "en ar", "ar en")
    YEAR = "16"

    def _folder(self):
        first, second = self.language_pair
        return f"{first}/{second}/{first}-{second}"

    def _sets(self):
        return {"valid": self.valid_set, "test": self.test_set}


class IWSLT2017Dataset(_TalksDataset):
    """IWSLT 2017: columns text and translation. `usage`: 'train', 'valid', 'test' or 'all'; `language_pair`:
    two of de, en, it, nl, ro.
    """

    ARGUMENTS = f"dataset_dir, usage=None, language_pair=None, {FILES_WORKERS_LAST}"
    PAIRS = tuple(f"{one} {other}" for one, other in permutations(("de", "en", "it", "nl", "ro"), 2))
    YEAR = "17"

    def _folder(self):
        return "DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo"

    def _sets(self):
        return {"valid": "dev2010", "test": "tst2010"}
