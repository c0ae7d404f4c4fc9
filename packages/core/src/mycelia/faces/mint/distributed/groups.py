"""Process groups: the world is one process of rank 0, and a group is a name for it."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored

_WORLD = "mccl_world_group"
_groups: dict[str, tuple[int, ...]] = {}  # name -> global ranks; empty until init_process_group


def _no_more_processes(owner: str, why: str) -> Exception:
    return errors.error(
        errors.MyceliaRuntimeError, owner, why,
        hint="several processes need a communication backend: hccl on Ascend, nccl on GPU",
    )  # fmt: skip


def check_group(owner: str, group) -> str:
    """The name of a group that exists. Errors: TypeError for no name, RuntimeError for none that exists."""
    if group is not None and not isinstance(group, str):
        raise errors.type_error(owner, f"group must be a str, but got {type(group).__name__}")
    if not _groups:
        raise errors.error(
            errors.MyceliaRuntimeError, owner, "there is no process group yet",
            hint="call init_process_group('mccl') first",
        )  # fmt: skip
    name = _WORLD if group is None else group
    if name not in _groups:
        raise errors.error(errors.MyceliaRuntimeError, owner, f"there is no group {name!r}")
    return name


def check_rank(owner: str, name: str, rank) -> None:
    """Raise unless `rank` is 0, the only one."""
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise errors.type_error(owner, f"{name} must be an int, but got {rank!r}")
    if rank != 0:
        raise errors.value_error(owner, f"{name} must be 0, the only rank, but got {rank}")


def is_available() -> bool:
    """Whether this module can be used: always."""
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return bool(_groups)


@ignored.arguments(
    init_method="no other process takes part",
    timeout="no other process takes part",
    store="no other process takes part",
    group_name="the world's group has a name of its own",
    pg_options="no communicator is made",
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
    """Begin with the world's group, which is this process.

    Errors: RuntimeError for a backend other than 'mccl', or if there is a group already or should be more
    than one process; ValueError for a `rank` outside of the world.
    """
    owner = "init_process_group"
    if not isinstance(backend, str):
        raise errors.type_error(owner, f"backend must be a str, but got {backend!r}")
    if backend != "mccl":
        raise _no_more_processes(owner, f"backend must be 'mccl' on the CPU, but got {backend!r}")
    if _groups:
        raise errors.error(errors.MyceliaRuntimeError, owner, "the process group is there already")
    if world_size not in (-1, 1):
        raise _no_more_processes(owner, f"world_size must be 1, but got {world_size}")
    if rank not in (-1, 0):
        raise errors.value_error(owner, f"rank must be 0, but got {rank}")
    _groups[_WORLD] = (0,)


def destroy_process_group(group=None):
    """Forget a group, or all of them.

    Errors: RuntimeError for a group that does not exist, TypeError for no str.
    """
    if group is None or group == _WORLD:
        _groups.clear()
    else:
        del _groups[check_group("destroy_process_group", group)]


@ignored.arguments(
    timeout="no other process takes part",
    backend="the group has the world's backend",
    pg_options="no communicator is made",
    use_local_synchronization="no other process takes part",
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
    """A group of `ranks` (all by default); its name.

    Errors: TypeError unless `ranks` is a list of ints, ValueError for ranks that do not exist.
    """
    check_group("new_group", None)
    if ranks is None:
        ranks = [0]
    if not isinstance(ranks, list):
        raise errors.type_error("new_group", f"ranks must be a list, but got {ranks!r}")
    if not ranks:
        raise errors.value_error("new_group", "ranks must not be empty")
    for rank in ranks:
        check_rank("new_group", "ranks", rank)
    name = f"group_{len(_groups)}"
    _groups[name] = (0,)
    return name


def get_rank(group=None) -> int:
    """The rank of this process in `group`: 0."""
    if group is not None:
        check_group("get_rank", group)
    return 0


def get_world_size(group=None) -> int:
    """The number of processes of `group`: 1."""
    if group is not None:
        check_group("get_world_size", group)
    return 1


def get_backend(group=None) -> str:
    """What carries the messages of `group`."""
    if group is not None:
        check_group("get_backend", group)
    return "mccl"


def get_process_group_ranks(group=None) -> list[int]:
    """The global ranks of a group."""
    return list(_groups[check_group("get_process_group_ranks", group)])


def get_global_rank(group, group_rank) -> int:
    """The global rank of a rank of a group."""
    check_group("get_global_rank", group)
    check_rank("get_global_rank", "group_rank", group_rank)
    return group_rank


def get_group_rank(group, global_rank) -> int:
    """The rank in a group of a global rank."""
    check_group("get_group_rank", group)
    check_rank("get_group_rank", "global_rank", global_rank)
    return global_rank
