"""Where in a pipeline a cache may stand."""

from __future__ import annotations

from mycelia import errors
from mycelia.dataset.pipeline import Dataset
from mycelia.dataset.sources.numbered import MappableDataset

_ALLOWED = ("MapDataset", "RenameDataset", "ProjectDataset")
_NAMES = {  # the words that MindSpore has for its operators
    "PaddedBatchDataset": "BatchNode",
    "BucketBatchDataset": "BucketBatchByLengthNode",
    "TakeDataset": "TakeNode (possibly from Split)",
    "SplitDataset": "TakeNode (possibly from Split)",
}


def check(node: Dataset) -> Dataset:
    """The source below a cached node. RuntimeError, naming the operator, where no cache may be."""
    source = node
    while source.children:
        if len(source.children) > 1:
            raise _unsupported(source)
        source = source.children[0]
    numbered = isinstance(source, MappableDataset)
    for below in node.walk():
        kind = type(below).__name__
        if below is not node and below.cache is not None:
            raise _refused(f"Nested cache operations over {_source_name(below)} is not supported.")
        if below is source:
            _check_source(source)
        elif kind == "MapDataset":
            _check_operations(below)
        elif kind == "RepeatDataset":
            if numbered:
                raise _refused("A cache over a RepeatNode of a mappable dataset is not supported.")
            if below.count == -1:
                raise _refused("A cache over a RepeatNode without end is not supported.")
        elif kind == "ShuffleDataset":
            if numbered:
                raise _refused(
                    "ShuffleNode is not supported as a descendant operator under a cache.",
                    "shuffle above the cache, or by the source's own `shuffle`",
                )
        elif kind not in _ALLOWED:
            raise _unsupported(below)
    return source


def _source_name(node: Dataset) -> str:
    return type(node).__name__ if not node.children else f"{type(node).__name__.removesuffix('Dataset')}Node"


def _refused(message: str, hint: str = "") -> errors.MyceliaRuntimeError:
    return errors.runtime_error("DatasetCache", message, hint=hint)


def _unsupported(node: Dataset) -> errors.MyceliaRuntimeError:
    kind = type(node).__name__
    name = _NAMES.get(kind, f"{kind.removesuffix('Dataset')}Node")
    return _refused(
        f"{name} is not supported as a descendant operator under a cache.", "use it above the cache"
    )


def _check_source(source: Dataset) -> None:
    if not hasattr(source, "source") and type(source).__name__ != "NumpySlicesDataset":
        return
    python = getattr(source, "source", None)
    numbered = hasattr(python, "__getitem__") and hasattr(python, "__len__")
    if not numbered or getattr(python, "cache_key", None) is None or getattr(source, "batch_sampler", None):
        raise _refused(
            "There is currently no support for GeneratorOp under cache.",
            "a source with __getitem__, __len__ and a cache_key, which names its content, is taken",
        )


def _check_operations(node: Dataset) -> None:
    for operation in node.operations:
        if is_random(operation):
            name = getattr(operation, "__name__", type(operation).__name__)
            raise _refused(
                "MapNode containing random operation is not supported as a descendant of cache: "
                f"{name} would give the same values for ever.",
                "apply it in a map above the cache",
            )
        if getattr(operation, "deterministic", True) is False:
            name = getattr(operation, "__name__", type(operation).__name__)
            raise _refused(
                f"MapNode containing {name}, which says deterministic=False, is not supported as a "
                "descendant of cache.",
                "apply it in a map above the cache",
            )


def is_random(operation) -> bool:
    """Whether an operation, or one that it holds, draws random numbers."""
    for name in ("random", "is_random"):
        known = getattr(operation, name, None)
        if isinstance(known, bool):
            if known:
                return True
            break
    held = getattr(operation, "__dict__", {}) if not isinstance(operation, type) else {}
    parts = [v for value in held.values() for v in (value if isinstance(value, (list, tuple)) else [value])]
    parts = [p for part in parts for p in (part if isinstance(part, (list, tuple)) else [part])]
    return any(callable(part) and not isinstance(part, type) and is_random(part) for part in parts)
