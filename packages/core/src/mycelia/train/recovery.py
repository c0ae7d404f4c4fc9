"""States of a training on a disk, from which it goes on to the same bits: weights, optimizer and loss scale,
streams of random numbers, and how many steps are done.

Each process writes its own file ``step_{done}/rank_{rank}_of_{size}.ckpt``, for not all of its state is that
of the others (statistics of normalizations, random numbers). A state holds if the files of all are whole.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mycelia.engine import _C
from mycelia.engine.base import errors, log
from mycelia.engine.communication import Communicator
from mycelia.engine.communication.share import GridShare, Share
from mycelia.engine.ops.random.generator import OwnStreams
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.io.checkpoint import load_checkpoint, save_in_background, wait_for_saves
from mycelia.io.into_net import load_param_into_net
from mycelia.nn.cell import Cell

_OWNER = "TrainFaultTolerance"
_FOLDER = re.compile(r"step_(\d+)")
_FILE = re.compile(r"rank_(\d+)_of_(\d+)\.ckpt")
_FACTS = "training_state"  # the last entry of a file: one that is cut off has none
_log = log.logger(__name__)


@dataclass(frozen=True, order=True)
class _State:
    done: int  # steps
    size: int  # processes that wrote it


class States:
    """The states in `folder` of the process `rank` of `size`; `together`: how it reaches the others if all
    train one network, on folders that may be one or each its own.
    """

    def __init__(self, folder: Path, rank: int, size: int, together: Communicator | None) -> None:
        self.folder, self.rank, self.size, self._together = folder, rank, size, together
        self._writing: tuple[int, Future] | None = None
        self._written = -1  # steps of the newest file of this process that is whole
        self._streams = OwnStreams()

    # ---- saving --------------------------------------------------------------------------------------------

    def save(self, network: Cell, done: int, facts: dict[str, Any]) -> None:
        """Begins to write the state after `done` steps; called by all processes at the same step. What all
        have written before makes older states superfluous.

        Errors: RuntimeError, on all ranks, naming the rank whose file could not be written.
        """
        self.finish()
        path = self._path(_State(done, self.size), self.rank)
        shares = {p.name: asdict(p.share) for p in network.get_parameters() if p.share is not None}
        elsewhere = [p.name for p in network.get_parameters() if p.elsewhere]
        told = {
            **facts, "done": done, "random": _random_places(self._streams), "shares": shares,
            "elsewhere": elsewhere,
        }  # fmt: skip
        text = json.dumps(told, default=float)  # numbers of NumPy
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writing = done, save_in_background(network, str(path), {_FACTS: text})
        except OSError as cause:
            failed: Future = Future()
            failed.set_exception(cause)
            self._writing = done, failed

    def finish(self) -> None:
        """Waits until the file that is being written is on the disk. Errors: as `save`."""
        error = ""
        if self._writing is not None:
            done, written = self._writing
            self._writing = None
            cause = written.exception()
            if cause is None:
                self._written = done
            else:
                error = f"{type(cause).__name__}: {cause}"
        told = [(self.rank, self._written, error)]
        if self._together is not None:
            told = self._together.all_gather_object(told[0])
        failed = [f"rank {rank} cannot write its state: {why}" for rank, _, why in told if why]
        if failed:
            raise errors.runtime_error(_OWNER, "; ".join(failed))
        self._remove(below=min(written for _, written, _ in told))

    def _remove(self, below: int) -> None:
        """Files that are no longer needed: of this process, and of those that there are no more."""
        for folder, done in self._folders():
            if done >= below:
                continue
            for file, rank, size in _files(folder):
                if size != self.size or rank == self.rank:
                    _unlink(file)
            with contextlib.suppress(OSError):  # the last one removes it
                folder.rmdir()

    # ---- going on ------------------------------------------------------------------------------------------

    def restore(self, network: Cell) -> dict[str, Any] | None:
        """Gives `network` and the streams of random numbers the newest state that all processes can read;
        the facts that it was saved with. None if there is none: nothing was whole yet.

        Errors: RuntimeError if whole files are there but none can be read, or if one is of another network.
        """
        wait_for_saves()  # of a training before in this process, which was left
        common = self._agreed()
        for state in common:
            found, why = self._read(state, network)
            problems = [(self.rank, why)]
            if self._together is not None:
                problems = self._together.all_gather_object(problems[0])
            bad = [f"rank {rank}: {problem}" for rank, problem in problems if problem]
            if found is not None and not bad:
                self._apply(network, found[0], self._without_grid(state, *found))
                self._written = state.done if state.size == self.size else -1
                self._forget_newer(state)
                return {**found[0], "size": state.size}
            _log.warning("%s: the state of step %d is left out: %s", _OWNER, state.done, "; ".join(bad))
        if common:
            raise errors.runtime_error(
                _OWNER, f"none of the states of the steps {[s.done for s in common]} in {self.folder} can be "
                "read; the log says why", hint="remove them to begin anew",
            )  # fmt: skip
        return None

    def _agreed(self) -> list[_State]:
        """States that all have what they need of, the newest first."""
        mine = set()
        for folder, done in self._folders():
            files = {(rank, size) for _, rank, size in _files(folder)}
            for size in {size for _, size in files}:
                needed = {self.rank} if size == self.size else set(range(size))
                if all((rank, size) in files for rank in needed):
                    mine.add(_State(done, size))
        if self._together is not None:
            mine = set.intersection(*map(set, self._together.all_gather_object(mine)))
        return sorted(mine, key=lambda s: (s.done, s.size == self.size, s.size), reverse=True)

    def _read(self, state: _State, network: Cell) -> tuple[tuple[dict, dict] | None, str]:
        """Facts and values, for `network`; or why there are none."""
        path = self._path(state, self.rank % state.size)
        try:
            values = load_checkpoint(str(path), crc_check=True)
            facts = json.loads(values.pop(_FACTS))
            if facts.get("elsewhere") and state.size != self.size:
                return None, f"{path}: it is of one stage of a pipeline of {state.size} processes"
            facts["shares"] = shares = {name: _share(told) for name, told in facts["shares"].items()}
            # Of equally many parts each process is given the one it needs by the file of its own rank.
            sizes = {p.name: p.share.size for p in network.get_parameters() if isinstance(p.share, Share)}
            others = {
                name: share for name, share in shares.items()
                if (sizes.get(name) != share.size if isinstance(share, Share) else state.size != self.size)
            }  # fmt: skip
            if others:  # all processes have a part of what is needed
                paths = [self._path(state, rank) for rank in range(state.size)]
                files = [load_checkpoint(str(path), crc_check=True, choice_func=others.__contains__)
                         for path in paths]  # fmt: skip
                for name, share in others.items():
                    is_owned = isinstance(share, Share) and share.owner >= 0
                    values[name] = (
                        files[share.owner][name] if is_owned
                        else _joined(share, [file[name] for file in files[: share.size]])
                    )  # fmt: skip
            return (facts, values), ""
        except (OSError, ValueError, KeyError, TypeError) as cause:
            return None, f"{path}: {cause}"

    def _without_grid(self, state: _State, facts: dict, values: dict) -> dict:
        """The values, of Parameters that operators divide the wholes: which part is whose shows when graphs
        are compiled again.
        """
        for name, share in facts.pop("shares").items():
            if isinstance(share, GridShare) and state.size == self.size and self._together is not None:
                own = values[name]
                bits = self._together.all_gather(own._bits())
                values[name] = _joined(share, [_C.from_array(b, own.dtype, False) for b in bits], own)
        return values

    def _apply(self, network: Cell, facts: dict, values: dict) -> None:
        missing, unknown = load_param_into_net(network, values, strict_load=True)
        missing = sorted(set(missing) - set(facts.get("elsewhere", ())))  # what other stages have
        if missing or unknown:
            raise errors.runtime_error(
                _OWNER, f"the state in {self.folder} is of another network: without values are {missing}, "
                f"unknown are {unknown}", hint="a folder belongs to one training; another needs its own",
            )  # fmt: skip
        _go_on_from(self._streams, facts.pop("random"))

    def _forget_newer(self, state: _State) -> None:
        """Of what not all had written nothing is used any more; it is written anew."""
        for folder, done in self._folders():
            if done > state.done:
                for file, _, _ in _files(folder):
                    _unlink(file)
        if self._together is not None:
            self._together.barrier()  # before anybody writes

    # ---- files ---------------------------------------------------------------------------------------------

    def _path(self, state: _State, rank: int) -> Path:
        return self.folder / f"step_{state.done}" / f"rank_{rank}_of_{state.size}.ckpt"

    def _folders(self) -> list[tuple[Path, int]]:
        if not self.folder.is_dir():
            return []
        found = [(path, _FOLDER.fullmatch(path.name)) for path in self.folder.iterdir()]
        return [(path, int(match[1])) for path, match in found if match]


def _share(told: dict[str, Any]) -> Share | GridShare:
    shape = tuple(told["shape"])
    if "matrix" not in told:
        return Share(told["rank"], told["size"], shape, told.get("owner", -1))
    return GridShare(told["rank"], tuple(told["matrix"]), tuple(map(tuple, told["axes"])), shape)


def _joined(share: Share | GridShare, parts: list[Tensor], like: Parameter | None = None) -> Parameter:
    """What all processes have parts of."""
    like = parts[0] if like is None else like
    whole = _C.from_array(
        np.ascontiguousarray(share.join([part._bits() for part in parts])), like.dtype, False
    )
    return Parameter(whole, like.name, like.requires_grad)


def _files(folder: Path) -> list[tuple[Path, int, int]]:
    """Files of processes, each with the rank and their number."""
    try:
        found = [(path, _FILE.fullmatch(path.name)) for path in folder.iterdir()]
    except FileNotFoundError:  # another process has removed it
        return []
    return [(path, int(match[1]), int(match[2])) for path, match in found if match]


def _unlink(file: Path) -> None:
    with contextlib.suppress(OSError):  # another process has removed it, or files there cannot be removed
        file.unlink()


def _random_places(streams: OwnStreams) -> dict[str, Any]:
    """Where all random numbers of this process are that a training draws from."""
    kind, keys, position, has_gauss, gauss = np.random.get_state()
    numpy = [kind, [int(key) for key in keys], int(position), int(has_gauss), float(gauss)]
    return {"mycelia": streams.positions(), "python": random.getstate(), "numpy": numpy}


def _go_on_from(streams: OwnStreams, places: dict[str, Any]) -> None:
    streams.go_on_from(places["mycelia"])
    version, numbers, gauss = places["python"]
    random.setstate((version, tuple(numbers), gauss))
    kind, keys, *rest = places["numpy"]
    np.random.set_state((kind, np.array(keys, np.uint32), *rest))
