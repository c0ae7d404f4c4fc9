"""Where the time of a pipeline goes: per stage, in the reader's thread and in workers, and what limits it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from mycelia.dataset import nodes
from mycelia.dataset.execution.worker_pool import title
from mycelia.dataset.pipeline import Dataset, dataset_methods
from mycelia.engine.base import errors

_MOST_S = 10.0  # of a pipeline that `profile` reads itself


@dataclass
class Stage:
    """What was measured of one node. Seconds are wall time of the thread that reads."""

    name: str
    depth: int  # nodes between it and the end of the pipeline
    node: object
    rows: int = 0
    seconds: float = 0.0  # until its rows were there, with all below it
    below: list[Stage] = field(default_factory=list)
    cache: dict = field(default_factory=dict)  # hits and misses since it began, and bytes in the cache
    over: bool = False
    _inside: bool = False
    _pool: object = None

    @property
    def own_seconds(self) -> float:
        """Without the stages below and without waiting for workers."""
        waited = self.pool.stats.waited if self.pool else 0.0
        return max(0.0, self.seconds - waited - sum(stage.seconds for stage in self.below))

    @property
    def pool(self):
        """Its workers, or None; those that have ended are remembered."""
        if not self.over:
            self._pool = self.node._run.pool_of(self.node) or self._pool
        return self._pool

    @property
    def busy_seconds(self) -> float:
        """What it costs until all rows are there, if nothing else had to be done: own work, or that of all
        workers divided by their number.
        """
        pool = self.pool
        return self.own_seconds if pool is None else max(self.own_seconds, pool.stats.busy / pool.count)

    def start(self) -> None:
        """Count from here on."""
        if self.node.cache_figures is not None:
            self.cache = self.node.cache_figures()

    def stop(self) -> None:
        """Count no more."""
        self._pool, self.over = self.pool, True
        if self.node.cache_figures is not None:
            now = self.node.cache_figures()
            self.cache = {**now, **{k: now[k] - self.cache[k] for k in ("hits", "misses")}}

    def timed(self, make: Callable) -> Callable:
        """`make`, which gives an iterator or None, with a clock."""

        def call(*args):
            rows = make(*args)
            return None if rows is None else self._clocked(iter(rows))

        return call

    def _clocked(self, rows: Iterator) -> Iterator:
        while True:
            if self._inside or self.over:  # one method of the node uses another
                yield from rows
                return
            self._inside, start = True, time.perf_counter()
            try:
                row = next(rows)
            except StopIteration:
                return
            finally:
                self.seconds += time.perf_counter() - start
                self._inside = False
            self.rows += 1
            yield row


class Watch:
    """The stages of one run."""

    def __init__(self, root):
        self.stages: list[Stage] = []
        self._watched(root, 0)
        self.begun = time.perf_counter()
        self.elapsed = 0.0

    def _watched(self, node, depth: int) -> Stage:
        stage = Stage(_name(node), depth, node)
        self.stages.append(stage)
        stage.start()
        for method in ("rows", "rows_from", "batches"):
            if hasattr(node, method):
                setattr(node, method, stage.timed(getattr(node, method)))
        stage.below = [self._watched(child, depth + 1) for child in node.children]
        return stage

    def stop(self) -> None:
        """The run is over."""
        if not self.elapsed:
            self.elapsed = time.perf_counter() - self.begun
            for stage in self.stages:
                stage.stop()


def _name(node) -> str:
    kind = type(node).__name__.removesuffix("Dataset")
    operations = getattr(node, "operations", None)
    if operations:
        return f"{kind} {title(operations)}"
    if kind == "Batch" and not callable(node.batch_size):
        return f"Batch {node.batch_size}"
    return kind


class Profile:
    """Figures of the pipelines read in a ``with`` block or by `profile`; `bottleneck` names what limits."""

    def __init__(self, show: bool = True):
        self._show = show
        self._watches: list[Watch] = []

    def __enter__(self) -> Profile:
        if self in _active:
            raise errors.runtime_error("profile", "this profile is measuring already")
        _active.append(self)
        return self

    def __exit__(self, kind, *_) -> None:
        _active.remove(self)
        for watch in self._watches:
            watch.stop()
        if self._show and kind is None:
            print(self)

    @property
    def stages(self) -> list[dict]:
        """One dict per stage: name, rows, seconds, own_seconds, workers, busy_seconds, fill, share;
        of a cache hits, misses and bytes.
        """
        return [_figures(watch, stage) for watch in self._watches for stage in watch.stages]

    @property
    def bottleneck(self) -> str:
        """The stage that the rows wait for longest, or what reads them if that takes longer."""
        return max(map(_verdict, self._watches), default=(0.0, "nothing was read"))[1]

    def __str__(self) -> str:
        return "\n".join(_text(watch) for watch in self._watches) or "no pipeline was read"


def _figures(watch: Watch, stage: Stage) -> dict:
    pool = stage.pool
    return {
        "name": stage.name,
        "rows": stage.rows,
        "seconds": stage.seconds,
        "own_seconds": stage.own_seconds,
        "workers": f"{pool.count} {pool.kind}{'es' if pool.kind == 'process' else 's'}" if pool else "",
        "busy_seconds": pool.stats.busy if pool else stage.own_seconds,
        "fill": pool.stats.fill if pool else None,
        "share": stage.busy_seconds / watch.elapsed if watch.elapsed else 0.0,
        **stage.cache,
    }


def _verdict(watch: Watch) -> tuple[float, str]:
    """Seconds and name of what limits a run."""
    reading = watch.stages[0].seconds
    outside = watch.elapsed - reading
    if outside > reading:
        return outside, "what reads the rows: the pipeline waits for it"
    slowest = max(watch.stages, key=lambda stage: stage.busy_seconds)
    return slowest.busy_seconds, slowest.name


def _advice(watch: Watch) -> str:
    seconds, name = _verdict(watch)
    stage = next((s for s in watch.stages if s.name == name), None)
    text = f"bottleneck: {name} ({seconds / max(watch.elapsed, 1e-9):.0%} of {watch.elapsed:.2f} s)"
    if stage is None or not hasattr(stage.node, "num_parallel_workers"):
        return text
    pool = stage.pool
    return text + (f"; it has {pool.count} workers" if pool else "; num_parallel_workers may help")


def _text(watch: Watch) -> str:
    from rich.console import Console
    from rich.table import Table

    from mycelia.engine.base import terminal

    table = Table(
        title="dataset pipeline",
        title_justify="left",
        caption=_advice(watch),
        caption_justify="left",
    )
    table.add_column("stage")
    cached = ["cache hits"] if any(stage.cache for stage in watch.stages) else []
    for name in ("rows", "own ms", "workers", "workers ms", "us per row", "queue fill", "share", *cached):
        table.add_column(name, justify="right")
    for stage in watch.stages:
        figures = _figures(watch, stage)
        per_row = figures["busy_seconds"] / stage.rows * 1e6 if stage.rows else 0.0
        table.add_row(
            "  " * stage.depth + stage.name,
            str(stage.rows),
            f"{stage.own_seconds * 1e3:.1f}",
            figures["workers"],
            f"{figures['busy_seconds'] * 1e3:.1f}" if stage.pool else "",
            f"{per_row:.1f}",
            "" if figures["fill"] is None else f"{figures['fill']:.0%}",
            f"{figures['share']:.0%}",
            *(_hits(stage.cache) for _ in cached),
        )
    console = Console(width=terminal.WIDE, record=True, markup=False, file=_Nowhere())
    console.print(table)
    return console.export_text().rstrip()


def _hits(figures: dict) -> str:
    """How often rows were in the cache."""
    asked = figures["hits"] + figures["misses"] if figures else 0
    return f"{figures['hits'] / asked:.0%} of {asked}" if asked else ""


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, text: str) -> int:
        """Take the text."""
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


_active: list[Profile] = []


def watched(root) -> Watch | None:
    """The watch over a run that begins, if somebody measures."""
    if not _active:
        return None
    watch = Watch(root)
    for profile_ in _active:
        profile_._watches.append(watch)
    return watch


def profile(dataset=None, rows: int | None = None, *, show: bool = True) -> Profile:
    """Measure pipelines: time per stage, how full the queues of workers are, and what limits.

    With a dataset it is read for one epoch (at most `rows` rows, and no more than 10 s) and the table is
    printed unless `show` is False. Without one, ``with profile() as p:`` measures all pipelines whose
    iterators are made inside. Errors: TypeError for something else than a dataset.
    """
    made = Profile(show)
    if dataset is None:
        return made
    nodes.of_type("profile", "dataset", dataset, Dataset)
    if rows is not None:
        nodes.integer("profile", "rows", rows, 1)
    with made:
        iterator = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
        end = time.perf_counter() + _MOST_S
        for number, _ in enumerate(iterator, 1):
            if number == rows or time.perf_counter() > end:
                break
        iterator.stop()
    return made


@dataset_methods
class Profiling:
    """The method that tells where the time goes."""

    def profile(self, rows: int | None = None, *, show: bool = True):
        """Read the pipeline once and tell where the time goes; see `mycelia.dataset.profile`."""
        return profile(self, rows, show=show)
