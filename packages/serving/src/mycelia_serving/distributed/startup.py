"""`startup_agents`: starts the agents of one host."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from mycelia_serving.rpc.calls import ask
from mycelia_serving.rpc.connection import Connection, Kind
from mycelia_serving.rpc.sockets import connect
from mycelia_serving.servable.arguments import (
    check_bytes,
    check_choice,
    check_int,
    check_str,
    check_strings,
)
from mycelia_serving.wire.proto import serving_pb2 as pb

_CONNECT_S = 60.0  # for the leader
_PAUSE_S = 0.1  # between attempts to reach it


def startup_agents(
    distributed_address: str,
    model_files: list[str] | tuple[str, ...],
    group_config_files: list[str] | tuple[str, ...] | None = None,
    agent_start_port: int = 7000,
    agent_ip: str | None = None,
    rank_start: int | None = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
) -> None:
    """Starts one agent for each rank of this host and returns when all are ready; they end with this process.

    distributed_address: where `distributed.start_servable` listens. model_files: one per rank of this host,
    in the order of the ranks. agent_start_port: from which the first agent
    connects, the next ones count up; 0: any.
    agent_ip and rank_start, together: the address of this host, and its first rank, if the host names in the
    rank table are not addresses. Errors: RuntimeError; then none is left running.
    """
    check_str("distributed_address", distributed_address)
    models = check_strings("model_files", model_files)
    check_int("agent_start_port", agent_start_port, 0, 65535 - len(models))
    configs: tuple[str | None, ...] = (None,) * len(models)
    if group_config_files is not None:
        configs = check_strings("group_config_files", group_config_files)
        if len(configs) != len(models):
            raise RuntimeError(f"There are {len(models)} model files, but {len(configs)} group config files")
    for file in (*models, *(c for c in configs if c)):
        if not os.path.isfile(file):
            raise RuntimeError(f"The file {file} does not exist")
    if dec_key is not None and len(check_bytes("dec_key", dec_key)) not in (16, 24, 32):
        raise RuntimeError(f"Parameter 'dec_key' should have 16, 24 or 32 bytes, but has {len(dec_key)}")
    check_choice("dec_mode", dec_mode, ("AES-GCM", "AES-CBC"))
    if (agent_ip is None) != (rank_start is None):
        raise RuntimeError("Parameters 'agent_ip' and 'rank_start' are given together or not at all")
    host, ranks = _ranks(_configuration(distributed_address), agent_ip, rank_start)
    if len(ranks) != len(models):
        raise RuntimeError(
            f"The rank table has {len(ranks)} ranks for {host}, but there are {len(models)} models"
        )
    settings = [
        {
            "rank": rank,
            "model_file": os.path.abspath(models[i]),
            "group_config_file": configs[i],
            "host": host,
            "port": agent_start_port + i if agent_start_port else 0,
            "leader": distributed_address,
            "dec_key": dec_key.hex() if dec_key else None,
            "dec_mode": dec_mode,
        }
        for i, rank in enumerate(ranks)
    ]
    Agents(settings, distributed_address).start()


def _configuration(address: str) -> pb.AgentConfigAcquireReply:
    """What the leader says of the ranks; it is waited for."""
    end = time.monotonic() + _CONNECT_S
    while True:
        try:
            link = Connection(connect(address), timeout=_CONNECT_S)
            break
        except (OSError, ValueError) as error:
            if time.monotonic() > end or isinstance(error, ValueError):
                text = getattr(error, "strerror", None) or error
                raise RuntimeError(f"No distributed servable answers at {address}: {text}") from None
        time.sleep(_PAUSE_S)
    request = pb.AgentConfigAcquireRequest().SerializeToString()
    answer = ask(link, Kind.CONFIGURE, request, Kind.CONFIGURATION)
    link.close()
    if answer is None:
        raise RuntimeError(f"No distributed servable answers at {address}")
    return pb.AgentConfigAcquireReply.FromString(answer)


def _ranks(
    config: pb.AgentConfigAcquireReply, agent_ip: str | None, rank_start: int | None
) -> tuple[str, list[int]]:
    """The address of this host and its ranks."""
    hosts = [rank.ip for rank in config.rank_list]
    if agent_ip is None:
        ours = [host for host in dict.fromkeys(hosts) if _is_ours(host)]
        if len(ours) != 1:
            raise RuntimeError(
                f"The rank table names the hosts {', '.join(dict.fromkeys(hosts))}, of which {len(ours)} are "
                "this one: give 'agent_ip' and 'rank_start'"
            )
        return ours[0], [i for i, host in enumerate(hosts) if host == ours[0]]
    check_str("agent_ip", agent_ip)
    check_int("rank_start", rank_start, 0, len(hosts) - 1)
    if not _is_ours(agent_ip):
        raise RuntimeError(f"Parameter 'agent_ip' should be an address of this host, but got {agent_ip}")
    return agent_ip, [i for i, host in enumerate(hosts) if host == hosts[rank_start]]


def _is_ours(host: str) -> bool:
    """Whether this machine can listen there."""
    try:
        with socket.socket() as probe:
            probe.bind((host, 0))
        return True
    except OSError:
        return False


class Agents:
    """The agents of this host, from their start to their end."""

    def __init__(self, settings: list[dict], leader: str) -> None:
        self._settings = settings
        self._leader = leader
        self.processes: list[subprocess.Popen] = []

    def start(self) -> None:
        """Waits until all are ready. Errors: RuntimeError, and none is left."""
        for settings in self._settings:
            process = subprocess.Popen(
                [sys.executable, "-m", "mycelia_serving.distributed.agent"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for this process, which then ends them
            )
            self.processes.append(process)
            process.stdin.write(json.dumps(settings).encode() + b"\n")
            process.stdin.flush()
        for process, settings in zip(self.processes, self._settings):
            if process.stdout.readline() != b"ready\n":
                self.end()
                self._tell_failure()
                raise RuntimeError(f"The agent of rank {settings['rank']} could not be started")
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.end())
        threading.Thread(target=self.wait, name="serving-agents").start()

    def wait(self) -> None:
        """Until one ends, and with it the others."""
        for process in self.processes:
            process.wait()
            self.end()

    def end(self) -> None:
        """Ends all."""
        for process in self.processes:
            if process.poll() is None:
                process.terminate()

    def _tell_failure(self) -> None:
        with contextlib.suppress(OSError):  # it finds out by itself
            link = Connection(connect(self._leader))
            link.send((Kind.FAILED, 0, pb.AgentFailedRequest().SerializeToString()))
            link.flush(2.0)
            link.close()
