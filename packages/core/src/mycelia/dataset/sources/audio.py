"""Published sets of sounds: WAV files with what was said, and Tedlium's SPHERE files."""

from __future__ import annotations

import os
import re
import struct

import numpy as np

from mycelia.dataset.sources.described import MAPPED, ListedDataset, lines, text
from mycelia.engine.base import errors

_FULL = np.float32(32767)  # what 16 bits count up to; the lowest value lies a little below -1


def read_wav(owner: str, path) -> tuple[np.ndarray, int]:
    """A WAV file of PCM as float32 [1, n] in [-1, 1], channels in turns, and its rate. RuntimeError if it is
    none.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as e:
        raise errors.runtime_error(owner, f"{path} cannot be read: {e}") from None
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise errors.runtime_error(owner, f"{path} is no WAV file")
    chunks, at = {}, 12
    while at + 8 <= len(data):
        name, size = data[at : at + 4], struct.unpack("<I", data[at + 4 : at + 8])[0]
        chunks.setdefault(name, data[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    if len(chunks.get(b"fmt ", b"")) < 16 or b"data" not in chunks:
        raise errors.runtime_error(owner, f"{path} is damaged: a chunk is missing")
    kind, _, rate, _, _, bits = struct.unpack("<HHIIHH", chunks[b"fmt "][:16])
    if kind not in (1, 0xFFFE) or bits not in (8, 16, 32):
        raise errors.runtime_error(
            owner, f"{path} has format {kind} with {bits} bits, not PCM of 8, 16 or 32"
        )
    body = chunks[b"data"]
    body = body[: len(body) // (bits // 8) * (bits // 8)]
    if bits == 16:
        values = np.frombuffer(body, "<i2").astype(np.float32) / _FULL
    elif bits == 8:  # without a sign, 128 is silence
        values = (np.frombuffer(body, np.uint8).astype(np.float32) - 128) / np.float32(127)
    else:
        values = (np.frombuffer(body, "<i4").astype(np.float64) / (2**31 - 1)).astype(np.float32)
    return values[None], rate


class _SoundsDataset(ListedDataset):
    """Entries of a WAV file and further columns."""

    RATE: int | None = None  # the rate that the set's files have
    RATE_TYPE = np.int32

    def read(self, entry):
        path, *columns = entry
        owner = type(self).__name__
        sound, rate = read_wav(owner, path)
        if self.RATE is not None and rate != self.RATE:
            raise self.problem(f"{path} has rate {rate}, but the set has {self.RATE}")
        return (sound, np.asarray(rate, self.RATE_TYPE), *map(np.asarray, columns))


class CMUArcticDataset(_SoundsDataset):
    """CMU Arctic: columns waveform (float32 [1, n]), sample_rate (uint32 []), transcript, utterance_id
    (text).

    `name`: the speaker, 'aew' by default; files of 'cmu_us_<name>_arctic'.
    """

    ARGUMENTS = f"dataset_dir, name=None, {MAPPED}"
    COLUMNS = ("waveform", "sample_rate", "transcript", "utterance_id")
    CHOICES = {
        "name": tuple("aew ahw aup awb axb bdl clb eey fem gka jmk ksp ljm lnh rms rxr slp slt".split())
    }
    MEANS = {"name": "aew"}
    RATE, RATE_TYPE = 16000, np.uint32

    def entries(self):
        root = self.dataset_dir / f"cmu_us_{self.name}_arctic"
        found = []
        for line in lines(root / "etc" / "txt.done.data"):
            match = re.match(r'. (\S+) "([^"]*)"', line)
            if match is None:
                raise self.problem(f"{root}: {line!r} is no name with a text in quotes")
            name, said = match.groups()
            found.append((root / "wav" / f"{name}.wav", said, name.rpartition("_")[2]))
        return found


# The numbers of the files that have no known faults, by the usual division (Kereliuk, Sturm, Larsen 2015).
_GTZAN = {
    "train": {
        "blues": "29-49 73-97", "classical": "30-33 43-48 50-67 80-99", "country": "19-26 28-29 65-99",
        "disco": "5 15-20 22-37 39-45 47 49 53-54 56-57 59 61 70 73-74 89",
        "hiphop": "2-25 28-29 31-38 41-42 55-61 77-80", "jazz": "0-1 11-24 41 47-72",
        "metal": "2-3 5 21 24 35 46-57 59-66 69 71-72 79-80 84 86 89-99",
        "pop": "2-9 11-12 16-20 23-29 31-36 38-42 44 46 49-50 80 97-99",
        "reggae": "0-2 4 6 9 11-12 14-32 42-45 49-51 54-60 63 69", "rock": "0-9 16-26 57-70 91-99",
    },
    "valid": {
        "blues": "0-11 50-60", "classical": "0-10 68-76", "country": "0-7 9-18 27 41-42 45 49",
        "disco": "0 2-4 6-14 46 48 52 67-68 72 75 90 95", "hiphop": "81-98", "jazz": "2-10 25-32",
        "metal": "0-1 6-11 16-20 36-37 68 76-77 81-82", "pop": "10 53 55 58-62 81 83-86",
        "reggae": "61-62 70 72 74 76-78 85 92-99", "rock": "38 49-56 71-85",
    },
    "test": {
        "blues": "12-28 61-72 98-99", "classical": "11-29 34-41 49 77-79",
        "country": "30-40 43-44 46-48 50-51 53-64", "disco": "1 21 58 62-66 69 76-88 91-94 96-97 99",
        "hiphop": "0 26-27 30 40 43-45 51-54 62-75 99", "jazz": "73-99",
        "metal": "12-15 22-23 25-33 38-39 67 70 73-75 78 83 85 87-88",
        "pop": "0-1 13-14 43 63-66 69-79 82 88-96",
        "reggae": "34-40 46-48 52-53 64-68 71 79 82-84 87-90", "rock": "10-15 27-37 39-48 86-90",
    },
}  # fmt: skip


def _numbers(ranges: str) -> set[int]:
    found: set[int] = set()
    for part in ranges.split():
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


class GTZANDataset(_SoundsDataset):
    """GTZAN: columns waveform (float32 [1, n]), sample_rate (uint32 []), label (text), the genre.

    `usage`: 'train', 'valid', 'test', the files without faults, or 'all'; files
    '<genre>/<genre>.<number>.wav'.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {MAPPED}"
    COLUMNS = ("waveform", "sample_rate", "label")
    CHOICES = {"usage": ("train", "valid", "test", "all")}
    MEANS = {"usage": "all"}
    RATE, RATE_TYPE = 22050, np.uint32

    def entries(self):
        found = []
        for genre in sorted(_GTZAN["train"]):
            wanted = None if self.usage == "all" else _numbers(_GTZAN[self.usage][genre])
            for path in sorted((self.dataset_dir / genre).glob("*.wav")):
                number = path.stem.rpartition(".")[2]
                if wanted is None or (number.isdigit() and int(number) in wanted):
                    found.append((path, genre))
        return found


class LibriTTSDataset(_SoundsDataset):
    """LibriTTS: columns waveform (float32 [1, n]), sample_rate (uint32 []), original_text, normalized_text
    (text), speaker_id, chapter_id (uint32 []), utterance_id (text). `usage`: a part, as 'dev-clean', or
    'all'.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {MAPPED}"
    COLUMNS = (
        "waveform", "sample_rate", "original_text", "normalized_text", "speaker_id", "chapter_id",
        "utterance_id",
    )  # fmt: skip
    _PARTS = (
        "dev-clean", "dev-other", "test-clean", "test-other", "train-clean-100", "train-clean-360",
        "train-other-500",
    )  # fmt: skip
    CHOICES = {"usage": (*_PARTS, "all")}
    MEANS = {"usage": "all"}
    RATE, RATE_TYPE = 24000, np.uint32

    def entries(self):
        found = []
        for part in self._PARTS if self.usage == "all" else (self.usage,):
            for table in sorted((self.dataset_dir / part).rglob("*.trans.tsv")):
                for line in lines(table):
                    fields = line.split("\t")
                    ids = re.fullmatch(r"(\d+)_(\d+)_[^_]*_[^_]*", fields[0])
                    if ids is None or len(fields) != 3:
                        raise self.problem(f"{table}: {line!r} is no utterance with two texts")
                    speaker, chapter = (np.uint32(n) for n in ids.groups())
                    path = self.dataset_dir / part / ids[1] / ids[2] / f"{fields[0]}.wav"
                    found.append((path, fields[1], fields[2], speaker, chapter, fields[0]))
        return found


class LJSpeechDataset(_SoundsDataset):
    """LJ Speech: columns waveform (float32 [1, n]), sample_rate (int32 []), transcription,
    normalized_transcription (text), as 'metadata.csv' lists them.
    """

    ARGUMENTS = f"dataset_dir, {MAPPED}"
    COLUMNS = ("waveform", "sample_rate", "transcription", "normalized_transcription")

    def entries(self):
        path = self.dataset_dir / "metadata.csv"
        found = []
        for line in lines(path):
            fields = line.split("|")
            if len(fields) != 3:
                raise self.problem(f"{path}: {line!r} has {len(fields)} fields instead of three")
            found.append((self.dataset_dir / "wavs" / f"{fields[0]}.wav", *fields[1:]))
        return found


class SpeechCommandsDataset(_SoundsDataset):
    """Speech Commands: columns waveform (float32 [1, n]), sample_rate (int32 []), label, speaker_id (text),
    utterance_number (int32 []).

    `usage`: 'test' and 'valid' are listed in 'testing_list.txt' and 'validation_list.txt', 'train' is the
    rest.
    """

    ARGUMENTS = f"dataset_dir, usage=None, {MAPPED}"
    COLUMNS = ("waveform", "sample_rate", "label", "speaker_id", "utterance_number")
    CHOICES = {"usage": ("train", "test", "valid", "all")}
    MEANS = {"usage": "all"}

    def entries(self):
        listed = {
            part: set(lines(path)) if self.usage != "all" and path.is_file() else set()
            for part, path in (
                ("test", self.dataset_dir / "testing_list.txt"),
                ("valid", self.dataset_dir / "validation_list.txt"),
            )
        }
        if self.usage in listed:
            names = sorted(listed[self.usage])
        else:
            there = self.dataset_dir.glob("*/*.wav")
            names = sorted(
                f"{p.parent.name}/{p.name}" for p in there if p.parent.name != "_background_noise_"
            )
            names = [name for name in names if not any(name in part for part in listed.values())]
        return [self._entry(name) for name in names]

    def _entry(self, name: str) -> tuple:
        match = re.fullmatch(r"(.*)/(.+)_nohash_(\d+)\.wav", name)
        if match is None:
            raise self.problem(f"{name} is not called '<label>/<speaker>_nohash_<number>.wav'")
        label, speaker, number = match.groups()
        return self.dataset_dir / name, label, speaker, np.int32(number)


class TedliumDataset(ListedDataset):
    """TED-LIUM: columns waveform (float32 [1, n]), sample_rate (int32 []), transcript, talk_id, speaker_id,
    identifier (text), a row per line of the STM files.

    `release`: 'release1', 'release2' with `usage` 'train', 'test', 'dev' or 'all', 'release3' with 'all'.
    """

    ARGUMENTS = f"dataset_dir, release, usage=None, extensions=None, {MAPPED}"
    COLUMNS = ("waveform", "sample_rate", "transcript", "talk_id", "speaker_id", "identifier")
    CHOICES = {"release": ("release1", "release2", "release3")}
    MEANS = {"usage": "all", "extensions": ".sph"}
    CHECKS = {"extensions": (str,)}
    _HEAD = 1024  # bytes of a SPHERE header

    def check(self):
        parts = ("all",) if self.release == "release3" else ("train", "test", "dev", "all")
        self.choose("usage", self.usage, parts)

    def entries(self):
        parts = ("dev", "test", "train") if self.usage == "all" else (self.usage,)
        found = []
        for part in ("data",) if self.release == "release3" else parts:
            root = self.dataset_dir / part
            if not (root / "stm").is_dir():
                raise self.problem(f"{root / 'stm'} is missing")
            for path in sorted((root / "stm").glob("*.stm")):
                rows = enumerate(lines(path))
                found += [(str(number), path.stem, self._entry(root, path, line)) for number, line in rows]
        # First lines of all talks come first, then the second ones, numbers ordered as texts.
        return [entry for *_, entry in sorted(found, key=lambda found: found[:2])]

    def _entry(self, root, path, line: str) -> tuple:
        fields = line.split(" ", 6)
        try:
            start, stop = float(fields[3]), float(fields[4])
            talk, _, speaker, _, _, identifier, said = fields
        except (IndexError, ValueError):
            raise self.problem(f"{path}: {line!r} is no line of seven fields with two times") from None
        return root / "sph" / f"{talk}{self.extensions}", start, stop, said, talk, speaker, identifier

    def read(self, entry):
        path, start, stop, *columns = entry
        try:
            with open(path, "rb") as file:
                head = file.read(self._HEAD).decode("ascii", "replace")
                match = re.search(r"sample_rate -i (\d+)", head)
                if match is None or not int(match[1]):
                    raise self.problem(f"{path} has no header with a sample_rate")
                rate = int(match[1])
                samples = (os.fstat(file.fileno()).st_size - self._HEAD) // 2
                if not 0 <= start <= stop <= samples / rate:
                    raise self.problem(f"{path} has {samples / rate} s, a line asks for {start} to {stop}")
                first, last = int(start * rate), int(stop * rate)
                file.seek(self._HEAD + 2 * first)
                data = file.read(2 * (last - first))
        except OSError as e:
            raise self.problem(f"{path} cannot be read: {e}") from None
        order = "<i2" if "sample_byte_format -s2 01" in head else ">i2"
        sound = np.frombuffer(data, order).astype(np.float32) / _FULL
        return (sound[None], np.asarray(rate, np.int32), *map(text, columns))


class YesNoDataset(_SoundsDataset):
    """YesNo: columns waveform (float32 [1, n]), sample_rate (int32 []), label (int32 [m]), from the name."""

    ARGUMENTS = f"dataset_dir, {MAPPED}"
    COLUMNS = ("waveform", "sample_rate", "label")

    def entries(self):
        found = []
        for path in sorted(self.dataset_dir.glob("*.wav")):
            try:
                found.append((path, np.asarray(path.stem.split("_"), np.int32)))
            except ValueError:
                raise self.problem(f"{path.name} is not called by digits with '_' between them") from None
        return found
