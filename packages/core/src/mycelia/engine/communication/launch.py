"""What a launcher tells a process by its environment: its rank, how many there are, and where they meet."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from mycelia.engine.base import errors, settings

#: In the environment of a process that msrun has given no rank: file descriptor and inode of the pipe to
#: which it writes the one that it gets.
RANK_PIPE = "MYCELIA_RANK_PIPE"
LONGEST_S = 1e6  # 11 days; systems take no timeouts beyond 24


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """What the hook `mycelia_communicator` gets.

    `engine`: asked for by name ("socket", "mpi", ...), or empty: whatever fits; `launcher`: who has started
    the process, "msrun", "mpi", "torchrun", or "scheduler": this one is only where the others meet; `rank`:
    -1 if the engine knows; `address`, `port`: where the processes meet; `timeout_s`: how long one is waited
    for, 0 as long as can be; `local`: rank and number among the
    processes of this machine; `serves`: whether this process is where they meet; `token`: what each must
    know to join; `shared_memory`: whether processes of one machine may hand arrays over in it.
    """

    engine: str
    launcher: str
    rank: int
    size: int
    address: str = "127.0.0.1"
    port: int = 0
    timeout_s: float = 1800.0
    local: tuple[int, int] = (0, 1)
    serves: bool = False
    token: str = ""
    shared_memory: bool = True

    def __post_init__(self) -> None:
        """Errors: ValueError for what no processes can have."""
        if self.size < 1 or not -1 <= self.rank < self.size:
            raise errors.value_error(
                "init", f"the launcher says rank {self.rank} of {self.size} processes, which does not exist"
            )
        if not 0 <= self.port < 65536:
            raise errors.value_error("init", f"ports are in [0, 65535], but the launcher says {self.port}")
        if not self.timeout_s >= 0:
            raise errors.value_error("init", f"the timeout must not be negative, but is {self.timeout_s:g} s")
        object.__setattr__(self, "timeout_s", min(self.timeout_s or LONGEST_S, LONGEST_S))


#: What mpirun tells: number of processes, rank, and both among those of the machine.
_MPI = (
    (
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)


def _number(environment: Mapping[str, str], *names: str, default: int | None = None) -> int:
    for name in names:
        text = environment.get(name, "")
        if text:
            try:
                return int(text)
            except ValueError:
                raise errors.value_error(
                    "init", f"the environment's {name} must be a number, but is {text!r}"
                ) from None
    if default is None:
        raise errors.runtime_error("init", f"the environment does not say {' or '.join(names)}")
    return default


def from_environment(environment: Mapping[str, str] | None = None) -> LaunchConfig | None:
    """What the launcher said; None if none has started this process.

    msrun: MS_WORKER_NUM, RANK_ID, MS_SCHED_HOST, MS_SCHED_PORT, MS_NODE_ID; mpirun: OMPI_COMM_WORLD_SIZE or
    PMI_SIZE; torchrun: WORLD_SIZE, RANK, MASTER_ADDR, MASTER_PORT; RANK_SIZE, RANK_ID alone are a world of
    one. Errors: ValueError for what is no number, or a rank or port out of range, RuntimeError for what is
    missing.
    """
    env = os.environ if environment is None else environment
    common = {
        "engine": str(settings.get("communicator")),
        "timeout_s": float(settings.get("communication_timeout_s")),
        "token": str(settings.get("job_token")),
        "shared_memory": bool(settings.get("shared_memory")),
    }
    if env.get("MS_WORKER_NUM"):
        size = _number(env, "MS_WORKER_NUM")
        port = _number(env, "MS_SCHED_PORT", default=None if size > 1 else 0)
        where = {"address": env.get("MS_SCHED_HOST", "127.0.0.1"), "port": port}
        if env.get("MS_ROLE") == "MS_SCHED":
            common["timeout_s"] = float(_number(env, "MS_TOPO_TIMEOUT", default=600))
            return LaunchConfig(launcher="scheduler", rank=-1, size=size, **where, **common)
        rank = _number(env, "RANK_ID", "MS_NODE_ID", default=0 if size == 1 else -1)
        local = (
            _number(env, "LOCAL_RANK", default=rank),
            _number(env, "LOCAL_WORLD_SIZE", default=size),
        )
        return LaunchConfig(
            launcher="msrun", rank=rank, size=size, local=local,
            **where, **common,
        )  # fmt: skip
    for size_name, rank_name, local_rank, local_size in _MPI:
        if env.get(size_name):
            size = _number(env, size_name)
            local = _number(env, local_rank, default=0), _number(env, local_size, default=size)
            return LaunchConfig(
                launcher="mpi", rank=_number(env, rank_name), size=size, local=local, **common
            )
    if env.get("WORLD_SIZE"):
        rank, size = _number(env, "RANK"), _number(env, "WORLD_SIZE")
        return LaunchConfig(
            launcher="torchrun", rank=rank, size=size, address=env.get("MASTER_ADDR", "127.0.0.1"),
            port=_number(env, "MASTER_PORT", default=None if size > 1 else 0), serves=rank == 0,
            local=(_number(env, "LOCAL_RANK", default=rank), _number(env, "LOCAL_WORLD_SIZE", default=size)),
            **common,
        )  # fmt: skip
    if env.get("RANK_SIZE"):
        size = _number(env, "RANK_SIZE")
        if size > 1:
            raise errors.runtime_error(
                "init", f"RANK_SIZE says {size} processes, but nobody says where they meet",
                hint="start them by `mycelia msrun --worker_num N script.py`, or by mpirun",
            )  # fmt: skip
        return LaunchConfig(launcher="msrun", rank=0, size=1, **common)
    return None


def tell_launcher(rank: int) -> None:
    """The launcher of this machine gets to know which rank this process has, if it waits for that."""
    descriptor, _, inode = os.environ.get(RANK_PIPE, "").partition(" ")
    if not inode:
        return
    try:
        found = os.fstat(int(descriptor))
        # What stands between launcher and this process may have closed it, and opened another file.
        if stat.S_ISFIFO(found.st_mode) and found.st_ino == int(inode):
            os.write(int(descriptor), f"{rank}\n".encode())
    except (OSError, ValueError):
        pass  # without it a rank may be blamed that has only missed another
