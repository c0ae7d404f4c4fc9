"""Groups of processes and their ranks.

`init` asks the environment how many processes the launcher has started (`mycelia msrun`, mpirun, torchrun or
RANK_SIZE), and joins them by the engine that the hook `mycelia_communicator` gives.
"""

from __future__ import annotations

from mycelia.engine.base import config, errors, ignored, plugins
from mycelia.engine.communication import LaunchConfig, from_environment, world

HCCL_WORLD_COMM_GROUP = "hccl_world_group"
NCCL_WORLD_COMM_GROUP = "nccl_world_group"
MCCL_WORLD_COMM_GROUP = "mccl_world_group"
_BACKENDS = {"CPU": "mccl", "CUDA": "nccl", "GPU": "nccl", "ASCEND": "hccl", "ASCEND-SIM": "hccl"}


class GlobalComm:
    """What is in force: the backend, the name of the group of all processes, whether `init` was called. Ranks
    that are threads change nothing.
    """

    BACKEND = "hccl"
    WORLD_COMM_GROUP = HCCL_WORLD_COMM_GROUP
    INITED = False
    CHECK_ENVS = True


def init(backend_name: str | None = None) -> None:
    """Join the processes that a launcher started. A thread that is a rank already stays it.

    Errors: TypeError for a name that is no text, ValueError for an unknown one, RuntimeError without a
    launcher, for the backend of another device, and if the processes do not come together.
    """
    own = own_backend()
    if backend_name is not None and not isinstance(backend_name, str):
        raise errors.type_error("init", f"backend_name must be a str, but got {type(backend_name).__name__}")
    if backend_name not in (None, "hccl", "nccl", "mccl"):
        raise errors.one_of(backend_name, ("hccl", "nccl", "mccl"), subject="init", what="backend_name")
    if backend_name not in (None, own):
        target = config.get("device_target")
        raise _error(
            "init", f"backend_name must be {own!r} for the device target {target}, but got {backend_name!r}"
        )
    if world.current() is None:
        launched = from_environment()
        if launched is None:
            raise _error(
                "init",
                "no launcher has started this process",
                "start it by `mycelia msrun` or mpirun; a single process needs no init",
            )
        if launched.launcher == "scheduler":
            _be_the_meeting_place(launched)
        join("init", launched)
    if not world.is_thread():  # of which the others know nothing
        GlobalComm.BACKEND, GlobalComm.WORLD_COMM_GROUP, GlobalComm.INITED = own, f"{own}_world_group", True


def _be_the_meeting_place(launched: LaunchConfig) -> None:
    """What MindSpore's scheduler is, which users start beside the workers: it ends when all have met."""
    from mycelia.parallel.engines import rendezvous

    listener = rendezvous.listen(launched.address, launched.port)
    meeting = rendezvous.Rendezvous(listener, launched.size, launched.token, launched.timeout_s)
    meeting.run()
    raise SystemExit(meeting.error or 0)


def own_backend() -> str:
    """The name of the collectives of the target device."""
    return _BACKENDS.get(str(config.get("device_target")).upper(), "mccl")


def join(owner: str, launched: LaunchConfig) -> None:
    """Join the processes that `launched` describes. Errors: RuntimeError if no engine can."""
    communicator = plugins.manager().hook.mycelia_communicator(config=launched)
    if communicator is None:
        raise _error(owner, f"no engine {launched.engine!r} carries tensors between processes")
    world.join(communicator)


def release() -> None:
    """Leave the processes again; groups that were made are gone."""
    GlobalComm.INITED = False
    world.leave()


def _error(subject: str, message: str, hint: str = "") -> Exception:
    return errors.error(errors.MyceliaRuntimeError, subject, message, hint=hint)


def _name(subject: str, group) -> str:
    if not isinstance(group, str):
        raise errors.type_error(subject, f"group must be a str, but got {type(group).__name__}")
    return group


def require_group(subject: str, group) -> tuple[int, ...]:
    """The ranks of a group, which this process need not be in.

    Errors: RuntimeError before `init`, ValueError for a group that does not exist.
    """
    return world.ranks_of(subject, _name(subject, group))


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The number of this process in a group; the one of `RANK_ID` before `init`, else 0."""
    _name("get_rank", group)
    if world.current() is None:
        return int(config.get("rank"))
    return world.group("get_rank", group).rank


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes a group has; 1 before `init`."""
    _name("get_group_size", group)
    return 1 if world.current() is None else len(require_group("get_group_size", group))


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """The number of this process among those on this machine."""
    _name("get_local_rank", group)
    return 0 if world.current() is None else world.group("get_local_rank", group).local_rank


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """How many processes of the world are on this machine, and in the group."""
    _name("get_local_rank_size", group)
    if world.current() is None:
        return 1
    communicator = world.group("get_local_rank_size", group)
    return min(communicator.local_size, communicator.size)


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """The number in the world of a member of a group."""
    ranks = require_group("get_world_rank_from_group_rank", group)
    return ranks[world.member("get_world_rank_from_group_rank", group_rank_id, range(len(ranks)))]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """The number in a group of a process of the world."""
    return world.index_of("get_group_rank_from_world_rank", world_rank_id, _name("get_group_rank", group))


@ignored.arguments(options="the group uses the engine of the world")
def create_group(group: str, rank_ids: list[int], options=None) -> None:
    """Give some processes of the world a name; others may call it, too, but cannot use the group. One that
    is there stays as it is.

    Errors: ValueError for ranks that do not exist or are there twice, or if the group has other ones.
    """
    ranks = require_group("create_group", GlobalComm.WORLD_COMM_GROUP if isinstance(group, str) else group)
    if not isinstance(rank_ids, list):
        raise errors.type_error("create_group", f"rank_ids must be a list, but got {type(rank_ids).__name__}")
    if not rank_ids or len(set(map(repr, rank_ids))) != len(rank_ids):
        raise errors.value_error("create_group", f"rank_ids must name each process once, but got {rank_ids}")
    if group in world.WORLDS:
        raise errors.value_error("create_group", f"{group!r} is the group of all processes")
    members = tuple(world.member("create_group", rank, ranks) for rank in rank_ids)
    there = world.current().ranks(group)
    if there is None:
        world.current().create(group, members)
    elif there != members:
        raise errors.value_error(
            "create_group",
            f"there is a group {group!r} of the ranks {list(there)} already, but got {rank_ids}",
        )


def destroy_group(group: str) -> None:
    """Take the name of a group away again."""
    require_group("destroy_group", group)
    if group in world.WORLDS:
        raise errors.value_error("destroy_group", "the group of all processes cannot be destroyed")
    del world.current().groups[group]


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """The name of the group's communicator: that of the group."""
    require_group("get_comm_name", group)
    return group


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """The numbers in the world of a group's members."""
    return list(require_group("get_process_group_ranks", group))
