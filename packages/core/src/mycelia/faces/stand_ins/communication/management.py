"""Groups of processes and their ranks, for a world of one process.

`init` asks the environment how many processes the launcher has started (msrun: MS_WORKER_NUM, mpirun:
OMPI_COMM_WORLD_SIZE, or RANK_SIZE).
"""

from __future__ import annotations

import os

from mycelia.engine.base import config, errors, ignored

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_WORLDS = (HCCL_WORLD_COMM_GROUP, NCCL_WORLD_COMM_GROUP, MCCL_WORLD_COMM_GROUP)
_LAUNCHERS = ("MS_WORKER_NUM", "OMPI_COMM_WORLD_SIZE", "RANK_SIZE")
_BACKENDS = {"CPU": "mccl", "CUDA": "nccl", "GPU": "nccl", "ASCEND": "hccl", "ASCEND-SIM": "hccl"}


class GlobalComm:
    """What is in force: the backend, the name of the group of all processes, whether `init` was called."""

    BACKEND = "hccl"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


_groups: dict[str, tuple[int, ...]] = {}  # by name, those of create_group


def init(backend_name: str | None = None) -> None:
    """Join the processes that a launcher started.

    Errors: TypeError for a name that is no text, ValueError for an unknown one, RuntimeError without a
    launcher,
    for a backend of other devices, and for several processes: no backend here has collectives between them.
    """
    own = _BACKENDS.get(str(config.get("device_target")).upper(), "mccl")
    if backend_name is not None and not isinstance(backend_name, str):
        raise errors.type_error("init", f"backend_name must be a str, but got {type(backend_name).__name__}")
    if backend_name not in (None, "hccl", "nccl", "mccl"):
        raise errors.one_of(backend_name, ("hccl", "nccl", "mccl"), subject="init", what="backend_name")
    if backend_name not in (None, own):
        target = config.get("device_target")
        raise _error(
            "init", f"backend_name must be {own!r} for the device target {target}, but got {backend_name!r}"
        )
    size = next((os.environ[name] for name in _LAUNCHERS if os.environ.get(name)), None)
    if size is None:
        raise _error(
            "init",
            "no launcher has started this process",
            "start it by msrun or mpirun; a single process needs no init",
        )
    if int(size) != 1:
        raise _error(
            "init",
            f"{size} processes were started: the backend of {config.get('device_target')} has no collectives",
            "hccl on Ascend and nccl on GPU would have them",
        )
    GlobalComm.BACKEND, GlobalComm.WORLD_COMM_GROUP, GlobalComm.INITED = own, f"{own}_world_group", True


def release() -> None:
    """Leave the processes again; groups that were made are gone."""
    GlobalComm.INITED = False
    _groups.clear()


def _error(subject: str, message: str, hint: str = "") -> Exception:
    return errors.error(errors.MyceliaRuntimeError, subject, message, hint=hint)


def _name(subject: str, group) -> str:
    if not isinstance(group, str):
        raise errors.type_error(subject, f"group must be a str, but got {type(group).__name__}")
    return group


def require_group(subject: str, group) -> tuple[int, ...]:
    """The ranks of a group. Errors: RuntimeError before `init`, ValueError for a group that does not
    exist."""
    name = _name(subject, group)
    if not GlobalComm.INITED:
        raise _error(subject, "the processes have not joined yet", "call communication.init() first")
    if name in _WORLDS:
        return (0,)
    if name not in _groups:
        raise errors.one_of(name, (GlobalComm.WORLD_COMM_GROUP, *_groups), subject=subject, what="group")
    return _groups[name]


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The number of this process in a group; the one of `RANK_ID` before `init`, else 0."""
    _name("get_rank", group)
    return 0 if GlobalComm.INITED else int(config.get("rank"))


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes a group has."""
    _name("get_group_size", group)
    return len(_groups.get(group, (0,)))


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The number of this process among those on this machine."""
    _name("get_local_rank", group)
    return 0


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes of a group are on this machine."""
    _name("get_local_rank_size", group)
    return len(_groups.get(group, (0,)))


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The number in the world of a member of a group."""
    ranks = require_group("get_world_rank_from_group_rank", group)
    return ranks[_member("get_world_rank_from_group_rank", group_rank_id, range(len(ranks)))]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The number in a group of a process of the world."""
    ranks = require_group("get_group_rank_from_world_rank", group)
    return ranks.index(_member("get_group_rank_from_world_rank", world_rank_id, ranks))


def _member(subject: str, rank, ranks) -> int:
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise errors.type_error(subject, f"a rank must be an int, but got {rank!r}")
    if rank not in ranks:
        raise errors.value_error(subject, f"the group has the ranks {list(ranks)}, but got {rank}")
    return rank


@ignored.arguments(options="no communicator is made")
def create_group(group: str, rank_ids: list[int], options=None) -> None:
    """Give some processes of the world a name."""
    require_group("create_group", GlobalComm.WORLD_COMM_GROUP if isinstance(group, str) else group)
    if not isinstance(rank_ids, list):
        raise errors.type_error("create_group", f"rank_ids must be a list, but got {type(rank_ids).__name__}")
    if not rank_ids or len(set(rank_ids)) != len(rank_ids):
        raise errors.value_error("create_group", f"rank_ids must name each process once, but got {rank_ids}")
    _groups[group] = tuple(_member("create_group", rank, (0,)) for rank in rank_ids)


def destroy_group(group: str) -> None:
    """Take the name of a group away again."""
    require_group("destroy_group", group)
    if group in _WORLDS:
        raise errors.value_error("destroy_group", "the group of all processes cannot be destroyed")
    del _groups[group]


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """The name of the group's communicator: that of the group."""
    require_group("get_comm_name", group)
    return group


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """The numbers in the world of a group's members."""
    return list(require_group("get_process_group_ranks", group))
