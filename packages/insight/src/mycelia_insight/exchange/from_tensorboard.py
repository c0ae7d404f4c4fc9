"""Runs of TensorBoard's log folders."""

from __future__ import annotations

import os
import re
from functools import partial

from mycelia_insight.exchange.export import Counts, copy
from mycelia_insight.exchange.run_writer import RunWriter
from mycelia_insight.exchange.sources import Source, Warn, readable
from mycelia_insight.runs.kinds import Dialect
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run


def sources(library: Library) -> list[Source]:
    """Runs with event files of TensorBoard; others are passed over."""
    found = []
    for run in library.runs():
        if Dialect.TENSORBOARD in run.dialects():
            name = run.name or readable(os.path.basename(os.path.realpath(run.folder)))
            seconds = min((tag.first_time for tag in run.tags()), default=0.0)
            found.append(Source(name, seconds, partial(_write, run)))
    return found


def _write(run: Run, writer: RunWriter, counts: Counts, warn: Warn) -> None:
    copy(run, re.compile(""), writer, warn, counts)
    for path, count, first in run.broken():
        offset, what = first[0]
        warn(f"{path}: {count} broken record{'s' if count > 1 else ''}, the first at byte {offset}: {what}")
