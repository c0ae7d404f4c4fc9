"""Process groups, by the names of MindSpore's mint: those of `mycelia.communication`."""

from __future__ import annotations

import dataclasses
import datetime

from mycelia.engine.base import errors, ignored, settings
from mycelia.engine.communication import LaunchConfig, from_environment, world
from mycelia.faces.stand_ins.communication import management

_WORLD = world.WORLDS[0]


def check_group(owner: str, group) -> str:
    """The name of a group that exists. Errors: TypeError for no name, RuntimeError for none that exists."""
    if group is not None and not isinstance(group, str):
        raise errors.type_error(owner, f"group must be a str, but got {type(group).__name__}")
    here = world.current()
    if here is None:
        raise errors.error(
            errors.MyceliaRuntimeError, owner, "there is no process group yet",
            hint="call init_process_group('mccl') first",
        )  # fmt: skip
    name = _WORLD if group is None else group
    if here.ranks(name) is None:
        raise errors.error(errors.MyceliaRuntimeError, owner, f"there is no group {name!r}")
    return name


def place_of(owner: str, name: str, rank, group: str) -> int:
    """The place in the group of a rank of the world. Errors: TypeError, ValueError name the argument."""
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise errors.type_error(owner, f"{name} must be an int, but got {rank!r}")
    ranks = world.ranks_of(owner, group)
    if rank not in ranks:
        raise errors.value_error(owner, f"{name} must be one of the ranks {list(ranks)}, but got {rank}")
    return ranks.index(rank)


def is_available() -> bool:
    """Whether this module can be used: always."""
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return world.current() is not None


@ignored.arguments(
    store="processes meet where the launcher or init_method says",
    group_name="the world's group has a name of its own",
    pg_options="the engine has no options",
    device_id="set_device chooses the device",
)
def init_process_group(
    backend="hccl",
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
):
    """Join the processes that a launcher started, or those that meet at ``init_method="tcp://host:port"``,
    where `rank` 0 of `world_size` listens; without either the group is this process alone.

    `timeout`: a timedelta; how long a collective waits for a rank.
    Errors: RuntimeError for a backend other than 'mccl', if there is a group already, or if the processes do
    not come together; ValueError for a `rank` outside of the world, or another `init_method`.
    """
    owner = "init_process_group"
    if not isinstance(backend, str):
        raise errors.type_error(owner, f"backend must be a str, but got {backend!r}")
    if backend != "mccl":
        raise _error(owner, f"backend must be 'mccl' on the CPU, but got {backend!r}",
                     "hccl needs an Ascend backend, nccl one for GPUs")  # fmt: skip
    if timeout is not None and not isinstance(timeout, datetime.timedelta):
        raise errors.type_error(owner, f"timeout must be a datetime.timedelta, but got {timeout!r}")
    if world.current() is not None:
        raise _error(owner, "the process group is there already", "destroy_process_group() leaves it")
    launched = (
        _at(init_method, world_size, rank) if init_method not in (None, "env://") else from_environment()
    )
    if launched is None:
        if world_size not in (-1, 1):
            raise _error(
                owner, f"world_size must be 1 without a launcher or an init_method, but got {world_size}",
                "start the processes by `mycelia msrun`, or give init_method='tcp://host:port'",
            )  # fmt: skip
        launched = LaunchConfig(engine="", launcher="alone", rank=0, size=1)
    if world_size not in (-1, launched.size):
        raise _error(owner, f"world_size is {world_size}, but the launcher has started {launched.size}", "")
    if rank not in (-1, launched.rank):
        raise errors.value_error(owner, f"rank must be {launched.rank}, as the launcher says, but got {rank}")
    if timeout is not None:
        launched = dataclasses.replace(launched, timeout_s=timeout.total_seconds())
    management.join(owner, launched)


def _error(owner: str, why: str, hint: str) -> Exception:
    return errors.error(errors.MyceliaRuntimeError, owner, why, hint=hint)


def _at(init_method, size, rank) -> LaunchConfig:
    """The world that meets at ``tcp://host:port``."""
    owner = "init_process_group"
    text = str(init_method)
    host, colon, port = text.removeprefix("tcp://").rpartition(":")
    if not text.startswith("tcp://") or not colon or not port.isdecimal():
        raise errors.value_error(owner, f"init_method must be 'tcp://host:port', but got {init_method!r}")
    if size < 1 or not 0 <= rank < size:
        raise errors.value_error(
            owner, f"init_method needs world_size and a rank within, but got world_size={size}, rank={rank}"
        )
    return LaunchConfig(
        engine="socket", launcher="tcp", rank=rank, size=size, address=host.strip("[]"), port=int(port),
        local=(rank, size), timeout_s=float(settings.get("communication_timeout_s")),
        serves=rank == 0, token=str(settings.get("job_token")),
    )  # fmt: skip


def destroy_process_group(group=None):
    """Forget a group, or leave all of them.

    Errors: RuntimeError for a group that does not exist, TypeError for no str.
    """
    if group is None or group in world.WORLDS:
        management.release()
    else:
        del world.current().groups[check_group("destroy_process_group", group)]


@ignored.arguments(
    timeout="the group waits as long as the world",
    backend="the group has the world's backend",
    pg_options="the engine has no options",
    use_local_synchronization="making a group sends nothing",
    group_desc="groups have no description",
)
def new_group(
    ranks=None,
    timeout=None,
    backend=None,
    pg_options=None,
    use_local_synchronization=False,
    group_desc=None,
) -> str:
    """A group of `ranks` (all by default); its name. All processes make the same groups in the same order.

    Errors: TypeError unless `ranks` is a list of ints, ValueError for ranks that do not exist.
    """
    owner = "new_group"
    check_group(owner, None)
    if ranks is None:
        ranks = list(world.ranks_of(owner, _WORLD))
    if not isinstance(ranks, list):
        raise errors.type_error(owner, f"ranks must be a list, but got {ranks!r}")
    if not ranks:
        raise errors.value_error(owner, "ranks must not be empty")
    for rank in ranks:
        place_of(owner, "ranks", rank, _WORLD)
    if len(set(ranks)) < len(ranks):
        raise errors.value_error(owner, f"ranks must name each process once, but got {ranks}")
    here = world.current()
    number = next(n for n in range(1, len(here.groups) + 2) if f"group_{n}" not in here.groups)
    here.create(f"group_{number}", ranks)
    return f"group_{number}"


def get_rank(group=None) -> int:
    """The rank of this process in `group`; 0 before there is one, -1 if it is not a member."""
    if group is None and world.current() is None:
        return 0
    name = check_group("get_rank", group)
    mine, ranks = world.current().communicator.rank, world.ranks_of("get_rank", name)
    return ranks.index(mine) if mine in ranks else -1


def get_world_size(group=None) -> int:
    """The number of processes of `group`; 1 before there is one."""
    if group is None and world.current() is None:
        return 1
    return len(world.ranks_of("get_world_size", check_group("get_world_size", group)))


def get_backend(group=None) -> str:
    """What carries the messages of `group`."""
    if group is not None:
        check_group("get_backend", group)
    return "mccl"


def get_process_group_ranks(group=None) -> list[int]:
    """The global ranks of a group."""
    return list(world.ranks_of("get_process_group_ranks", check_group("get_process_group_ranks", group)))


def get_global_rank(group, group_rank) -> int:
    """The global rank of a rank of a group."""
    ranks = world.ranks_of("get_global_rank", check_group("get_global_rank", group))
    if isinstance(group_rank, bool) or not isinstance(group_rank, int):
        raise errors.type_error("get_global_rank", f"group_rank must be an int, but got {group_rank!r}")
    if not 0 <= group_rank < len(ranks):
        raise errors.value_error(
            "get_global_rank", f"group_rank must be in [0, {len(ranks)}), but got {group_rank}"
        )
    return ranks[group_rank]


def get_group_rank(group, global_rank) -> int:
    """The rank in a group of a global rank."""
    return place_of("get_group_rank", "global_rank", global_rank, check_group("get_group_rank", group))
