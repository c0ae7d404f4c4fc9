"""What an import of a `servable_config.py` declares: models, methods and their stages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mycelia_serving.servable.contexts import Context
    from mycelia_serving.servable.method import MethodBuilder
    from mycelia_serving.servable.model import Model


@dataclass(frozen=True, slots=True)
class RankLayout:
    """How the parts of a distributed model are laid out."""

    rank_size: int
    stage_size: int
    pipeline: bool  # several batches may be on their way


@dataclass(frozen=True, slots=True, eq=False)
class ModelDeclaration:
    """What was said of a model."""

    key: str  # its files, joined
    files: tuple[str, ...]  # one per sub-graph
    format: str  # lower case
    with_batch_dim: bool
    unbatched: tuple[int, ...]  # inputs that are given whole
    context: Context | None
    config_file: str | None
    allow_reshape: bool  # values of another shape with as many elements are taken
    max_batch_delay_ms: float | None  # None: what the server says
    ranks: RankLayout | None = None  # of a distributed model, which has no files here


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A Python function that is a stage of methods."""

    call: Callable
    name: str
    inputs: int
    outputs: int
    batched: bool  # gets a tuple of instances
    one_at_a_time: bool  # never called by two threads at once


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A step of a method. Values of an instance have numbers: its inputs, then the results of each stage."""

    number: int  # from 1
    target: Model | Function
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    batch_size: int | None  # of functions: None one by one, 0 as the models, else at most so many
    tag: str


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """One service of a servable."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    stages: tuple[Stage, ...]
    results: tuple[int, ...]  # numbers of the values that are the outputs
    values: int  # how many numbers there are
    retry: bool  # may run again for an instance whose worker was lost
    default: bool  # the one that is meant when only the servable is named


@dataclass(slots=True, eq=False)
class Declaration:
    """All of a servable."""

    name: str
    folder: str
    models: list[Model] = field(default_factory=list)
    methods: dict[str, Method] = field(default_factory=dict)
    functions: dict[Callable, Function] = field(default_factory=dict)
    arities: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)  # of models, in stages
    building: MethodBuilder | None = None  # the method whose function runs right now
    module: ModuleType | None = None


_current: ContextVar[Declaration | None] = ContextVar("mycelia_serving_declaration", default=None)


def current(what: str) -> Declaration:
    """The servable whose config is being imported. Errors: RuntimeError when none is."""
    found = _current.get()
    if found is None:
        raise RuntimeError(f"{what} takes effect while Serving imports servable_config.py, and nowhere else")
    return found


@contextlib.contextmanager
def declaring(declaration: Declaration) -> Iterator[None]:
    """Within, what is declared belongs to `declaration`."""
    token = _current.set(declaration)
    try:
        yield
    finally:
        _current.reset(token)
