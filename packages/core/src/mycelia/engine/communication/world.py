"""The processes that this one trains with, and their groups by name.

One world to a process. Threads may have worlds of their own: the engine `local` runs a rank in each.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

from mycelia.engine.base import errors, parallel_settings
from mycelia.engine.communication.communicator import Communicator

WORLDS = ("hccl_world_group", "nccl_world_group", "mccl_world_group")


class World:
    """A communicator of all processes, and groups of some: None for those that this process is not in.

    `renamed`: how often the name of a group was given to other ranks than before; `layouts`: how often an
    operator got a strategy or a Parameter was cut, of which graphs of before do not know.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self.groups: dict[str, tuple[tuple[int, ...], Communicator | None]] = {}
        self.renamed = self.layouts = 0
        self._had: dict[str, tuple[int, ...]] = {}

    def create(self, name: str, ranks: Sequence[int]) -> None:
        members = tuple(ranks)
        mine = self.communicator.rank in members
        self.groups[name] = members, self.communicator.split(name, members) if mine else None
        if self._had.setdefault(name, members) != members:
            self._had[name] = members
            self.renamed += 1
            for follower in followers:
                follower()

    def ranks(self, name: str) -> tuple[int, ...] | None:
        """Members of a group by their ranks in the world; None if there is no such group."""
        if name in WORLDS:
            return self.communicator.ranks
        return self.groups[name][0] if name in self.groups else None


class _Thread(threading.local):
    world: World | None = None


_thread = _Thread()
_process: list[World] = []
#: Called when this process joins others or leaves them, and when a group becomes another.
followers: list[Callable[[], object]] = []


def current() -> World | None:
    """The world that is in force for this thread; None before `join`."""
    return _thread.world or (_process[0] if _process else None)


def join(communicator: Communicator) -> None:
    """This process is one of the communicator's from now on."""
    leave()
    if _thread.world is None:
        _process.append(World(communicator))
        for follower in followers:
            follower()


def leave() -> None:
    """This process is alone again. Ranks that are threads stay together."""
    if _thread.world is not None:
        _thread.world.groups.clear()
    elif _process:
        _process.pop().communicator.close()
        for follower in followers:
            follower()


@contextlib.contextmanager
def in_thread(communicator: Communicator) -> Iterator[None]:
    """This thread is a rank of the communicator meanwhile."""
    before, _thread.world = _thread.world, World(communicator)
    try:
        yield
    finally:
        _thread.world = before


def group(owner: str, name: str) -> Communicator:
    """The communicator of a group.

    Errors: RuntimeError before the processes have joined and for a group that this process is not in,
    ValueError for one that does not exist.
    """
    world = current()
    if world is None:
        raise errors.runtime_error(
            owner, "the processes have not joined yet", hint="call communication.init() first"
        )
    if name in WORLDS:
        return world.communicator
    if name not in world.groups:
        raise errors.one_of(name, (WORLDS[0], *world.groups), subject=owner, what="group")
    ranks, communicator = world.groups[name]
    if communicator is None:
        rank = world.communicator.rank
        raise errors.runtime_error(
            owner, f"rank {rank} is not in the group {name!r} of the ranks {list(ranks)}"
        )
    return communicator


def size(owner: str, name: str) -> int:
    """How many members a group has. Errors: as `group`."""
    return group(owner, name).size


def ranks_of(owner: str, name: str) -> tuple[int, ...]:
    """The ranks of a group, which this process need not be in.

    Errors: RuntimeError before the processes have joined, ValueError for a group that does not exist.
    """
    world = current()
    ranks = None if world is None else world.ranks(name)
    if ranks is None:
        return group(owner, name).ranks  # which says why there is none
    return ranks


def member(owner: str, rank: int, ranks: Sequence[int]) -> int:
    """`rank`, which is one of `ranks`. Errors: TypeError, ValueError."""
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise errors.type_error(owner, f"a rank must be an int, but got {rank!r}")
    if rank not in ranks:
        raise errors.value_error(owner, f"the group has the ranks {list(ranks)}, but got {rank}")
    return rank


def index_of(owner: str, rank: int, name: str) -> int:
    """The place in a group of a rank of the world. Errors: as `member` and `ranks_of`."""
    ranks = ranks_of(owner, name)
    return ranks.index(member(owner, rank, ranks))


def place() -> tuple[int, int] | None:
    """Rank and number of the processes that have joined; None before."""
    here = current()
    return None if here is None else (here.communicator.rank, here.communicator.size)


def version() -> tuple[int, int, int] | None:
    """Changes with all that graphs of this process may depend on: its rank, their number, ranks of groups."""
    here = current()
    return None if here is None else (here.communicator.rank, here.communicator.size, here.renamed)


def laid_out() -> None:
    """An operator has another strategy than before, or a Parameter was cut."""
    here = current()
    if here is not None:
        here.layouts += 1


def description() -> tuple[int, int, tuple] | None:
    """The same for graphs that other processes find on a disk, in full."""
    here = current()
    if here is None:
        return None
    groups = sorted((name, members) for name, (members, _) in here.groups.items())
    return here.communicator.rank, here.communicator.size, tuple(groups)


def is_thread() -> bool:
    """Whether ranks are threads: what one compiles is not for others."""
    return _thread.world is not None


parallel_settings.ask_for_the_world(place)
