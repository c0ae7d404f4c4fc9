"""Runs of MLflow's file stores: `mlruns/EXPERIMENT/RUN/{meta.yaml,params,metrics,tags}`.

A metric is a file of lines `milliseconds value step`, a parameter or a tag a file with its value; names with
`/` are paths.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from mycelia_insight.exchange.export import Counts
from mycelia_insight.exchange.run_writer import RunWriter
from mycelia_insight.exchange.sources import Source, Warn, files, opened_file, readable
from mycelia_insight.records.lineage import Value
from mycelia_insight.runs.run import Points

_AT_ONCE = 1 << 16  # lines of a metric
_LONGEST = 1 << 16  # bytes of a file with one value, and of a line
_TAGS = "mlflow.tag."


def sources(folder: str, warn: Warn) -> list[Source]:
    """Runs below a folder: a store, an experiment or a run."""
    found = []
    for path in files(folder):
        place, name = os.path.split(os.path.join(folder, path))
        if name != "meta.yaml" or ".trash" in path.split(os.sep):
            continue
        meta = _meta(os.path.join(place, name), warn)
        if "run_id" not in meta:
            continue  # of an experiment
        if meta.get("lifecycle_stage") == "deleted":
            warn(f"{place}: the run was deleted and is passed over")
            continue
        above = os.path.join(os.path.dirname(place), "meta.yaml")
        experiment = _meta(above, warn).get("name", "") if os.path.isfile(above) else ""
        title = meta.get("run_name") or _value(os.path.join(place, "tags", "mlflow.runName"))
        run = readable(title, meta["run_id"][:8])
        seconds = _milliseconds(meta.get("start_time", "")) or 0.0
        about = {"mlflow.experiment": experiment, "mlflow.name": title, "mlflow.id": meta["run_id"]}
        name = os.path.join(readable(experiment), run) if experiment else run
        found.append(Source(name, seconds, partial(_write, place, {k: v for k, v in about.items() if v})))
    return found


def _write(place: str, about: dict[str, Value], writer: RunWriter, counts: Counts, warn: Warn) -> None:
    for tag in files(os.path.join(place, "metrics")):
        path = os.path.join(place, "metrics", tag)
        try:
            with opened_file(path) as file:
                for points in _points(path, file, writer, warn):
                    writer.scalars(tag, points)
                    counts.kept["scalar"] += len(points.steps)
        except OSError as error:
            warn(f"{path} is left out: {error}")
    values: dict[str, Value] = {}
    for kind, prefix in (("params", ""), ("tags", _TAGS)):
        for name in files(os.path.join(place, kind)):
            if name.startswith("mlflow."):
                continue  # what MLflow notes of itself
            try:
                text = _value(os.path.join(place, kind, name))
            except OSError as error:
                warn(f"{os.path.join(place, kind, name)} is left out: {error}")
                continue
            values[prefix + name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")] = _parsed(
                text
            )
    values |= about
    writer.hyperparameters(values)
    counts.kept["hyper-parameter"] += len(values)
    left = sum(1 for _ in files(os.path.join(place, "artifacts")))
    if left:
        counts.left["artifact"] += left


def _points(path: str, file, writer: RunWriter, warn: Warn) -> Iterator[Points]:
    lines = iter(partial(file.readline, _LONGEST), b"")
    wrong = 0
    while some := list(islice(lines, _AT_ONCE)):
        found = []
        for line in some:
            try:
                time, value, step = (line.split() + [b"0"])[:3]
                moment = _milliseconds(time.decode())
                if moment is None or not -(2**63) <= int(step) < 2**63:
                    raise ValueError
                found.append((int(step), moment, float(value)))
            except ValueError:
                wrong += 1
        if found:
            steps, times, values = zip(*found, strict=True)
            singles = writer.single(np.array(values, np.float64))
            yield Points(np.array(steps, np.int64), np.array(times), singles, singles)
    if wrong:
        many = "1 line is" if wrong == 1 else f"{wrong} lines are"
        warn(f"{path}: {many} left out, not of the form `milliseconds value step`")


def _milliseconds(text: str) -> float | None:
    try:
        return int(text) / 1000
    except (ValueError, OverflowError):
        return None


def _value(path: str) -> str:
    if not os.path.lexists(path):
        return ""
    with opened_file(path) as file:
        return file.read(_LONGEST).decode("utf-8", "replace")


def _parsed(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _meta(path: str, warn: Warn) -> dict[str, str]:
    """The texts of a file of YAML with one level."""
    found: dict[str, str] = {}
    try:
        with opened_file(path) as file:
            text = file.read(_LONGEST).decode("utf-8", "replace")
    except OSError as error:
        warn(f"{path} is left out: {error}")
        return found
    name = ""
    for line in text.splitlines():
        if line[:1].isspace():  # a text that goes on
            if name:
                found[name] += f" {line.strip()}"
        elif ":" in line:
            name, _, value = line.partition(":")
            found[name] = value.strip()
    return {name: _unquoted(value) for name, value in found.items()}


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    return "" if value in ("null", "~") else value
