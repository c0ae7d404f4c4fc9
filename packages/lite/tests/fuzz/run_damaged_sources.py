"""Converts damaged models of other frameworks: `python run_damaged_sources.py FORMAT FIRST COUNT FILE...`

Mutation i changes one of the files by its own number, bytes or what its tables and messages say. What the
converter refuses must be a ConversionError or OSError with a reason, within limits of time and memory, and
leave no file; what it takes is loaded and run. A weight file of CAFFE lies beside its model, with `.weights`
behind the name. The last line has how many were refused and how many converted; problems go before it.
"""

from __future__ import annotations

import copy
import io
import json
import os
import random
import re
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "core" / "tests"))
sys.path.insert(0, str(Path(__file__).parent))
import message_mutations
import mutations
import table_mutations
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from run_damaged import use

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, convert
from mycelia_lite.converter.importers.caffe import caffe_pb2
from mycelia_lite.converter.importers.tensorflow import graph_pb2 as tensorflow_pb2
from mycelia_lite.converter.importers.tflite.file import TFL3
from mycelia_lite.format import FormatError, decode, encode

_ROOM = int(os.environ.get("ROOM", 1 << 30))  # bytes of address space for one conversion
_WORDS = re.compile(rb'"[^"]*"|[\w.+-]+|[{}:]')


def _message(data: bytes, rng: random.Random, kind) -> bytes:
    root = kind.FromString(data)
    message_mutations.change(root, rng)
    return root.SerializePartialToString()


def _table(data: bytes, rng: random.Random) -> bytes:
    root = decode(data, TFL3)
    table_mutations.change_any(root, rng)
    return bytes(encode(root))


def _words(data: bytes, rng: random.Random) -> bytes:
    """Words of a text changed for others of it, left out, doubled; other numbers."""
    words = _WORDS.findall(data)
    for _ in range(rng.choice((1, 1, 2))):
        at, how = rng.randrange(len(words)), rng.randrange(5)
        if how == 0:
            del words[at]
        elif how == 1:
            words.insert(at, words[at])
        elif how == 2:
            words[at] = rng.choice(words)
        else:
            numbers = [i for i, w in enumerate(words) if w.lstrip(b"-").isdigit()] or [at]
            words[rng.choice(numbers)] = rng.choice(
                (
                    b"0",
                    b"-1",
                    b"1",
                    b"2",
                    b"7",
                    b"65536",
                    b"2147483648",
                    b"9223372036854775807",
                    b"1e9",
                    b"true",
                )
            )
        if len(words) < 2:
            break
    return b" ".join(words)


def _archive(data: bytes, rng: random.Random) -> bytes:
    """A file of torch.export with other values in one of its JSON texts, or other bytes in a member."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    texts = [name for name in members if name.endswith(".json")]
    name = rng.choice(texts if texts and rng.random() < 0.8 else list(members))
    if name in texts:
        tree = json.loads(members[name])
        _value_of_tree(tree, rng)
        members[name] = json.dumps(tree).encode()
    else:
        members[name] = mutations.mutated(members[name], rng)
    if rng.random() < 0.05:
        del members[rng.choice(list(members))]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def _value_of_tree(tree, rng: random.Random) -> None:
    places = [(tree, key) for key in (tree if isinstance(tree, dict) else range(len(tree)))]
    for owner, key in places:  # grows while it is walked
        value = owner[key]
        if isinstance(value, (dict, list)):
            places += [(value, k) for k in (value if isinstance(value, dict) else range(len(value)))]
    for _ in range(rng.choice((1, 1, 2))):
        owner, key = rng.choice(places)
        other = rng.choice(places)
        new = (other[0][other[1]], 0, -1, 1, 3, 1 << 31, 1 << 40, 0.5, "", "nowhere", None, True, [], {})
        owner[key] = rng.choice(new) if rng.random() < 0.8 else copy.deepcopy(new[0])


def changed(framework: str, data: bytes, rng: random.Random, weights: bool) -> bytes:
    """The file with one change, of its bytes for a quarter of the numbers."""
    if rng.random() < 0.25:
        return mutations.mutated(data, rng)
    try:
        if framework == "TFLITE":
            return _table(data, rng)
        if framework == "PYTORCH":
            return _archive(data, rng)
        if framework == "CAFFE":
            return _message(data, rng, caffe_pb2.NetWeights) if weights else _words(data, rng)
        if framework == "ONNX":
            from mycelia.io.onnx.onnx_pb2 import ModelProto as Root
        elif framework == "TF":
            Root = tensorflow_pb2.Graph
        else:
            from mycelia.io.mindir.mindir_pb2 import ModelProto as Root
        return _message(data, rng, Root)
    except (FormatError, DecodeError, ValueError, TypeError, LookupError, text_format.ParseError):
        return mutations.mutated(data, rng)


def problem(framework: str, source: Path, weights: Path | None, out: Path, number: int) -> tuple[str, bool]:
    """What is wrong with how the conversion ends, "" if nothing is; and whether it made a file."""
    given = {"weight_file": str(weights)} if weights else {}
    before = set(out.iterdir())
    try:
        with mutations.limits(_ROOM), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            convert(mslite.FmkType[framework], str(source), str(out / "made"), **given)
    except (ConversionError, OSError) as error:
        left = set(out.iterdir()) - before
        if left:
            return f"a file is left: {sorted(p.name for p in left)}", False
        return (
            "" if str(error).strip() and not isinstance(error, TimeoutError) else f"no reason: {error!r}"
        ), False
    except MemoryError as error:
        return f"memory: {error!r}", False
    except BaseException as error:
        while error.__cause__ is not None or error.__context__ is not None:
            error = error.__cause__ or error.__context__
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}" if place else ""
        return f"{type(error).__name__} at {where}: {str(error)[:200]}", False
    made = out / "made.ms"
    try:
        if os.environ.get("RUN", "1") == "1":
            with mutations.limits(2 * _ROOM):  # the runtime must tell what it has no memory for
                use(made, random.Random(number))
    except RuntimeError as error:
        if not str(error).strip():
            return "no reason at run time", True
    finally:
        for path in set(out.iterdir()) - before:
            path.unlink()
    return "", True


def main() -> None:
    framework, first, count, files = (
        sys.argv[1],
        int(sys.argv[2]),
        int(sys.argv[3]),
        [Path(f) for f in sys.argv[4:]],
    )
    progress = os.environ.get("PROGRESS")
    told = made = 0
    problems: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        home, out = Path(folder), Path(folder) / "out"
        out.mkdir()
        for number in range(first, first + count):
            if progress:
                Path(progress).write_text(str(number))
            rng, file = random.Random(number), files[number % len(files)]
            suffix = "pt2" if framework == "PYTORCH" else framework.lower()
            source, beside = home / f"source.{suffix}", Path(f"{file}.weights")
            weights = home / "weights" if beside.exists() else None
            parts = [file.read_bytes()] + ([beside.read_bytes()] if weights else [])
            which = rng.randrange(len(parts))
            parts[which] = changed(framework, parts[which], rng, weights=which == 1)
            source.write_bytes(parts[0])
            if weights:
                weights.write_bytes(parts[1])
            why, converted = problem(framework, source, weights, out, number)
            if why:
                key = re.sub(r"0x[0-9a-f]+|\d+", "#", why)[:150]
                if key not in problems:
                    print(f"mutation {number} of {file.name}: {why}", flush=True)
                problems[key] = number
            told, made = told + (not converted), made + converted
    print(told, made)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
