"""Checkpoints of some ranks and one layout as those of others: parts are cut out of parts, and keep their
bits.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import errors
from mycelia.engine.communication.share import GridShare
from mycelia.engine.tensors.tensor import Parameter
from mycelia.io.checkpoint import load_checkpoint, save_checkpoint
from mycelia.parallel import strategy_files
from mycelia.parallel.strategy_files import Layouts

_ALONE = GridShare(0, (1,), (), ())


def _layouts(path: str | None, subject: str) -> Layouts | None:
    """What a strategy file says; None without one: all is whole. Errors: ValueError for one without
    Parameters.
    """
    if path is None:
        return None
    found = strategy_files.read(path, subject)
    if not found:
        raise errors.value_error(subject, f"the strategy file {path!r} says nothing of Parameters")
    sizes = {share.size for share in found.values()}
    if len(sizes) > 1:
        raise errors.value_error(subject, f"the strategy file {path!r} is of {sorted(sizes)} ranks")
    return found


def ranks_of(layouts: Layouts | None) -> int:
    """How many ranks a strategy file is of."""
    return 1 if layouts is None else next(iter(layouts.values())).size


def _share(layouts: Layouts | None, name: str, rank: int, shape: Sequence[int], size: int) -> GridShare:
    """Where a Parameter of that whole shape lies for a rank; one that no strategy names is whole."""
    known = None if layouts is None else layouts.get(name)
    if known is None:
        return GridShare(rank, (size,), ((),) * len(shape), tuple(shape))
    return GridShare(rank, known.matrix, known.axes, tuple(shape))


def _overlap(a: Sequence[slice], b: Sequence[slice]) -> tuple[slice, ...] | None:
    """What two blocks have in common; None if it is nothing."""
    found = tuple(slice(max(s.start, t.start), min(s.stop, t.stop)) for s, t in zip(a, b))
    return None if any(s.start >= s.stop for s in found) else found


def _sources(source: GridShare, block: Sequence[slice], near: int, known: Sequence[int]) -> list[int]:
    """The ranks that have what a block is made of: of those with equal parts `near`, or else the first known
    one, or the first.
    """
    by_place: dict[tuple, list[int]] = {}
    for rank in range(source.size):
        place = tuple((s.start, s.stop) for s in source.place(rank))
        by_place.setdefault(place, []).append(rank)
    found = []
    for place, ranks in by_place.items():
        if _overlap([slice(*p) for p in place], block) is None:
            continue
        there = [rank for rank in ranks if rank in known] or ranks
        found.append(near if near in there else there[0])
    return found


def rank_list(rank: int, source: Layouts | None, target: Layouts | None) -> list[int]:
    """The ranks whose files hold what `rank` needs."""
    if source is None:
        return [0]
    size, found = ranks_of(source), set()
    for name, share in source.items():
        if target is not None and name not in target:
            continue
        parts = [[math.prod(s.matrix[a] for a in axes) for axes in s.axes] for s in (share,
        (target or {}).get(name))
                 if s is not None]  # fmt: skip
        shape = [math.prod(column) for column in zip(*parts)]  # as small as it can be cut both ways
        block = _share(target, name, rank, shape, ranks_of(target)).place(rank)
        whole = GridShare(0, share.matrix, share.axes, tuple(shape))
        found.update(_sources(whole, block, rank % size, ()))
    return sorted(found) or [rank % size]


def _require_layout(subject: str, file: str, rank: int, name: str, value: Any, stated: GridShare) -> None:
    """ValueError if a file says of a part that it is another one than the strategy says."""
    own = value.share
    if own is None:
        return
    places = [[(s.start, s.stop) for s in share.place(rank)] for share in (own, stated)]
    if own.rank != rank or own.shape != stated.shape or places[0] != places[1]:
        raise errors.value_error(
            subject, f"{name!r} in {file!r} is the part of rank {own.rank} at {places[0]} of "
            f"{list(own.shape)}, but by the "
            f"strategy that of rank {rank} lies at {places[1]} of {list(stated.shape)}",
        )  # fmt: skip


class Source:
    """The checkpoints of some ranks: `files` by rank, which lie as `layouts` say."""

    def __init__(
        self, files: Mapping[int, str], layouts: Layouts | None, subject: str, **reading: Any
    ) -> None:
        self.files, self.layouts, self.subject = dict(files), layouts, subject
        self.size = ranks_of(layouts)
        for rank, file in self.files.items():
            if not os.path.isfile(file):
                raise errors.value_error(subject, f"the checkpoint file {file!r} of rank {rank} is not there")
        self._values = {rank: load_checkpoint(file, **reading) for rank, file in self.files.items()}

    @property
    def names(self) -> list[str]:
        """All that the files hold, in the order of the first."""
        return list(dict.fromkeys(itertools.chain.from_iterable(self._values.values())))

    def value(self, name: str, rank: int, target: Layouts | None) -> Any:
        """What `rank` has of `name` under another strategy.

        Errors: ValueError if a file that is needed is missing, or does not fit the strategy.
        """
        given = {r % self.size: values[name] for r, values in self._values.items() if name in values}
        first = next(iter(given.values()))
        if isinstance(first, str):
            return first
        shape = self._shape(name, first)
        size = ranks_of(target)
        wanted = _share(target, name, rank, shape, size)
        self._require_cut(name, wanted)
        block = wanted.place(rank)
        source = _share(self.layouts, name, 0, shape, self.size)
        if self.layouts is not None and name not in self.layouts:
            self._require_equal(name, given)
        made = np.empty([s.stop - s.start for s in block], first._bits().dtype)
        for r in _sources(source, block, rank % self.size, list(given)):
            if r not in given:
                raise errors.value_error(
                    self.subject, f"rank {rank} needs {name!r} of rank {r}, whose checkpoint is missing; "
                    f"there are those of "
                    f"the ranks {sorted(self.files)}",
                )  # fmt: skip
            part = given[r]
            place = source.place(r)
            if self._stated(part) and self.layouts is not None:
                _require_layout(self.subject, self._file(r), r, name, part, source)
            common = _overlap(place, block)
            assert common is not None
            into = tuple(slice(c.start - b.start, c.stop - b.start) for c, b in zip(common, block))
            out = tuple(slice(c.start - p.start, c.stop - p.start) for c, p in zip(common, place))
            made[into] = part._bits()[out]
        value = Parameter(_C.from_array(made, first.dtype, False), name, first.requires_grad)
        value.layerwise_parallel = first.layerwise_parallel
        if tuple(value.shape) != shape:
            value.share = wanted
        return value

    def _file(self, rank: int) -> str:
        return next(file for r, file in self.files.items() if r % self.size == rank)

    def _stated(self, part: Any) -> bool:
        return isinstance(part.share, GridShare)

    def _shape(self, name: str, part: Any) -> tuple[int, ...]:
        """The whole shape. Errors: ValueError if the strategy is of another number of axes, or there is none
        for a part.
        """
        known = None if self.layouts is None else self.layouts.get(name)
        if known is None:
            if self._stated(part):
                raise errors.value_error(
                    self.subject, f"the checkpoints have parts of {name!r}, which the source strategy does "
                    f"not name",
                    hint="give the strategy file of the training that wrote them as src_strategy_file",
                )  # fmt: skip
            return tuple(part.shape)
        if len(known.axes) != part.ndim:
            raise errors.value_error(
                self.subject,
                f"the strategy of {name!r} is of {len(known.axes)} axes, but its shape is {list(part.shape)}",
            )
        return tuple(n * math.prod(known.matrix[a] for a in axes) for n, axes in zip(part.shape, known.axes))

    def _require_cut(self, name: str, wanted: GridShare) -> None:
        for axis, (n, axes) in enumerate(zip(wanted.shape, wanted.axes)):
            parts = math.prod(wanted.matrix[a] for a in axes)
            if n % parts:
                raise errors.value_error(
                    self.subject, f"axis {axis} of {name!r}, of {n}, cannot be cut into {parts} equal "
                    f"parts, as the target "
                    "strategy says",
                )  # fmt: skip
        if len(wanted.axes) != len(wanted.shape):
            raise errors.value_error(
                self.subject, f"the target strategy of {name!r} is of {len(wanted.axes)} axes, but its "
                f"shape is "
                f"{list(wanted.shape)}",
            )  # fmt: skip

    def _require_equal(self, name: str, given: Mapping[int, Any]) -> None:
        """ValueError if ranks differ in what the strategy does not name: nobody knows how it lies."""
        first, *others = given.values()
        if any(o.shape != first.shape or not np.array_equal(o._bits(), first._bits()) for o in others):
            raise errors.value_error(
                self.subject, f"the source strategy does not name {name!r}, of which the ranks "
                f"{sorted(given)} have "
                "different values",
                hint="it must be the strategy file of the training that wrote the checkpoints",
            )  # fmt: skip


def write(source: Source, rank: int, target: Layouts | None, path: str) -> None:
    """Writes the checkpoint of `rank` under another strategy."""
    values = {name: source.value(name, rank, target) for name in source.names}
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    tensors = [{"name": name, "data": value} for name, value in values.items() if name not in texts]
    save_checkpoint(tensors, path, integrated_save=False, append_dict=texts or None)


def files_of(folder: str, subject: str, suffix: str = ".ckpt") -> dict[int, str]:
    """The last checkpoint by name in each folder ``rank_N``.

    Errors: NotADirectoryError; ValueError if there is none.
    """
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"For '{subject}', src_checkpoints_dir {folder!r} is not a directory")
    found = {}
    for path in Path(folder).iterdir():
        number = re.fullmatch(r"rank_(\d+)", path.name)
        files = sorted(path.glob(f"*{suffix}")) if number and path.is_dir() else []
        if files:
            found[int(number.group(1))] = str(files[-1])
    if not found:
        raise errors.value_error(
            subject, f"{folder!r} has no folder rank_N with a file of {suffix}",
            hint="each rank's checkpoints belong into a folder of its own: rank_0, rank_1 ...",
        )  # fmt: skip
    return found


# ---- MindSpore's functions ---------------------------------------------------------------------------------


def _int(subject: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise errors.type_error(subject, f"{name} must be an int, but got {value!r}")
    return value


def _require_rank(subject: str, rank: int, target: Layouts | None) -> None:
    size = ranks_of(target)
    if not 0 <= rank < size and target is not None:
        raise errors.value_error(
            subject, f"rank_id must be below the {size} ranks of dst_strategy_file, but got {rank}"
        )


def rank_list_for_transform(rank_id, src_strategy_file=None, dst_strategy_file=None):
    """The ranks whose checkpoints `transform_checkpoint_by_rank` needs for that of a rank, the last
    first. Without `src_strategy_file` all is on rank 0.

    Errors: TypeError, ValueError for a rank or a file that is none; NotImplementedError as
    `transform_checkpoints`.
    """
    subject = "rank_list_for_transform"
    rank = _int(subject, "rank_id", rank_id)
    source, target = (_layouts(f, subject) for f in (src_strategy_file, dst_strategy_file))
    _require_rank(subject, rank, target)
    return rank_list(rank, source, target)[::-1]


def rank_list_for_convert(rank_id, src_strategy_file=None, dst_strategy_file=None):
    """The newer name of `rank_list_for_transform`."""
    return rank_list_for_transform(rank_id, src_strategy_file, dst_strategy_file)


def transform_checkpoint_by_rank(
    rank_id, checkpoint_files_map, save_checkpoint_file_name, src_strategy_file=None, dst_strategy_file=None
):
    """Writes the checkpoint of one rank under another strategy, of those in `checkpoint_files_map`, rank ->
    file.

    Without a strategy file all is whole on one rank. Values keep their bits.  Errors: as
    `transform_checkpoints`.
    """
    subject = "transform_checkpoint_by_rank"
    rank = _int(subject, "rank_id", rank_id)
    if not isinstance(checkpoint_files_map, dict):
        raise errors.type_error(
            subject, f"checkpoint_files_map must be a dict, but got {type(checkpoint_files_map).__name__}"
        )
    if not isinstance(save_checkpoint_file_name, str):
        raise errors.type_error(
            subject,
            f"save_checkpoint_file_name must be a str, but got {type(save_checkpoint_file_name).__name__}",
        )
    if not save_checkpoint_file_name.endswith(".ckpt"):
        raise errors.value_error(
            subject, f"save_checkpoint_file_name must end with .ckpt, but got {save_checkpoint_file_name!r}"
        )
    source, target = (_layouts(f, subject) for f in (src_strategy_file, dst_strategy_file))
    _require_rank(subject, rank, target)
    write(Source(checkpoint_files_map, source, subject), rank, target, save_checkpoint_file_name)


def convert_checkpoint_by_rank(
    rank_id, checkpoint_files_map, save_checkpoint_file_name, src_strategy_file=None, dst_strategy_file=None
):
    """The newer name of `transform_checkpoint_by_rank`."""
    transform_checkpoint_by_rank(
        rank_id, checkpoint_files_map, save_checkpoint_file_name, src_strategy_file, dst_strategy_file
    )


def transform_checkpoints(
    src_checkpoints_dir, dst_checkpoints_dir, ckpt_prefix, src_strategy_file=None, dst_strategy_file=None,
    process_num=1, output_format="ckpt",
):  # fmt: skip
    """Writes the checkpoints of all ranks under another strategy: of the last file in each folder ``rank_N``
    of `src_checkpoints_dir` into ``rank_M/<ckpt_prefix>M.ckpt``. Without a strategy file all is whole on one
    rank. `process_num` has no effect: files are written one after the other.

    Errors: TypeError, ValueError naming the Parameter or the file for what does not fit together;
    NotADirectoryError; NotImplementedError for weights cut by optimizers or unequally, and for other formats.
    """
    subject = "transform_checkpoints"
    del process_num
    if output_format != "ckpt":
        if output_format != "safetensors":
            raise errors.one_of(output_format, ("ckpt", "safetensors"), subject=subject, what="output_format")
        raise errors.error(
            errors.NotSupportedError, subject, "safetensors files are not cut: output_format='ckpt'"
        )
    for name, value in (("ckpt_prefix", ckpt_prefix), ("dst_checkpoints_dir", dst_checkpoints_dir)):
        if not isinstance(value, str):
            raise errors.type_error(subject, f"{name} must be a str, but got {type(value).__name__}")
    files = files_of(src_checkpoints_dir, subject)
    source, target = (_layouts(f, subject) for f in (src_strategy_file, dst_strategy_file))
    for rank in range(ranks_of(target)):
        needed = rank_list(rank, source, target)
        missing = [r for r in needed if r not in files]
        if missing:
            raise errors.value_error(
                subject, f"rank {rank} needs the checkpoints of the ranks {needed}, but "
                f"{src_checkpoints_dir!r} has none of "
                f"{missing}",
            )  # fmt: skip
        folder = os.path.join(dst_checkpoints_dir, f"rank_{rank}")
        os.makedirs(folder, exist_ok=True)
        given = Source({r: files[r] for r in needed}, source, subject)
        write(given, rank, target, os.path.join(folder, f"{ckpt_prefix}{rank}.ckpt"))


def convert_checkpoints(
    src_checkpoints_dir, dst_checkpoints_dir, ckpt_prefix, src_strategy_file=None, dst_strategy_file=None,
    process_num=1, output_format="ckpt",
):  # fmt: skip
    """The newer name of `transform_checkpoints`."""
    transform_checkpoints(
        src_checkpoints_dir, dst_checkpoints_dir, ckpt_prefix, src_strategy_file, dst_strategy_file,
        process_num,
        output_format,
    )  # fmt: skip
