"""The process of one rank: `python -m mycelia_serving.distributed.agent`, started by `startup_agents`.

Settings come as a line of JSON on standard input; it ends when that input does.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mycelia_serving.clock import CLOCK
from mycelia_serving.distributed import messages
from mycelia_serving.engine.loaders import ModelOptions, load
from mycelia_serving.rpc.connection import Connection, Kind
from mycelia_serving.rpc.sockets import connect
from mycelia_serving.wire.proto import serving_pb2 as pb

_REGISTER_S = 30.0  # for the leader's answer
_PORT_S = 60.0  # how long the system may keep the port of an agent that has ended


class Agent:
    """One part of a model, and a connection over which the leader runs it."""

    def __init__(self, settings: dict) -> None:
        key = settings["dec_key"]
        options = ModelOptions(
            dec_key=bytes.fromhex(key) if key else None,
            dec_mode=settings["dec_mode"],
            config_file=settings["group_config_file"],
        )
        self.rank = settings["rank"]
        self.model = load("mindir", settings["model_file"], options)
        self.ended = threading.Event()
        self.link = Connection(_connect(settings["leader"], settings["host"], settings["port"]))
        self.address = f"{settings['host']}:{settings['port']}"
        self._registered: pb.AgentRegisterReply | None = None
        self._answered = threading.Event()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="serving-agent")  # one batch at a time
        self._pings = CLOCK.alarm(self._look)

    def register(self) -> None:
        """Offers this rank to the leader. Errors: RuntimeError."""
        row = [np.zeros([1 if n == -1 else n for n in x.shape], x.dtype) for x in self.model.inputs]
        outputs = self.model(row)
        spec = pb.AgentSpec(rank_id=self.rank)
        spec.inputs.extend(messages.to_info(x.dtype, x.shape) for x in self.model.inputs)
        spec.outputs.extend(messages.to_info(o.dtype, o.shape) for o in outputs)
        self._heard = time.monotonic()
        threading.Thread(target=self._read, name="serving-agent-link", daemon=True).start()
        request = pb.AgentRegisterRequest(agent_spec=[spec], address=self.address)
        self.link.send((Kind.REGISTER, 0, request.SerializeToString()))
        self._answered.wait(_REGISTER_S)
        if self._registered is None:
            raise RuntimeError("the leader does not answer")
        problem = messages.error_text(self._registered.error_msg)
        if problem:
            raise RuntimeError(problem)
        self._pings.by(time.monotonic() + messages.PING_S)

    def _read(self) -> None:
        """Takes the leader's frames until it ends, or the agent does."""
        for kind, number, body in self.link.frames():
            self._heard = time.monotonic()
            if kind == Kind.PREDICT:
                self._worker.submit(self._predict, number, body)
            elif kind == Kind.REGISTERED:
                self._registered = pb.AgentRegisterReply.FromString(body)
                self._answered.set()
            elif kind == Kind.EXIT:
                break
        self._answered.set()
        self.ended.set()

    def _predict(self, number: int, body: bytes) -> None:
        try:
            request = pb.DistributedPredictRequest.FromString(body)
            arrays = [messages.to_array(t) for t in request.inputs]
            found = [(a.dtype, a.ndim) for a in arrays]
            if found != [(x.dtype, len(x.shape)) for x in self.model.inputs]:
                raise RuntimeError(f"its part of the model takes {len(self.model.inputs)} other inputs")
            outputs = self.model(arrays)
            reply = pb.DistributedPredictReply()
            if request.return_result:
                reply.outputs.extend(messages.to_tensor(o) for o in outputs)
        except Exception as error:
            reply = pb.DistributedPredictReply(error_msg=messages.failed(3, error))
        self.link.send((Kind.RESULTS, number, reply.SerializeToString()))

    def _look(self, now: float) -> float:
        """A sign of life, and whether there is one of the leader."""
        self.link.send((Kind.PING, 0, pb.PingRequest(address=self.address).SerializeToString()))
        if now - self._heard > messages.SILENCE_S:
            print(f"the agent of rank {self.rank} ends: its leader is gone", file=sys.stderr)
            self.ended.set()
        return now + messages.PING_S

    def leave(self) -> None:
        """Tells the leader, and ends."""
        self.link.send((Kind.EXIT, 0, b""))
        self.link.flush(2.0)
        self.close()

    def close(self) -> None:
        """Ends without a word."""
        self._pings.cancel()
        self.link.close()
        self._worker.shutdown(wait=False, cancel_futures=True)


def _connect(leader: str, host: str, port: int):
    """A connection to the leader from a port of this host (0: any). Errors: RuntimeError."""
    end = time.monotonic() + _PORT_S
    while True:
        try:
            return connect(leader, source=(host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port:
                text = f"its address {host}:{port} cannot be had: it is in use"
                raise RuntimeError(text) from None
            if error.errno != errno.EADDRNOTAVAIL or time.monotonic() > end:
                raise RuntimeError(f"no leader answers at {leader}: {error.strerror or error}") from None
        time.sleep(1.0)


def main() -> int:
    settings = json.loads(sys.stdin.buffer.readline())
    try:
        agent = Agent(settings)
        agent.register()
    except RuntimeError as error:
        print(f"the agent of rank {settings['rank']} cannot start: {error}", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.ended.set())
    threading.Thread(target=_end_with_parent, args=(agent,), daemon=True).start()
    print("ready", flush=True)
    agent.ended.wait()
    agent.leave()
    return 0


def _end_with_parent(agent: Agent) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    agent.ended.set()


if __name__ == "__main__":
    sys.exit(main())
