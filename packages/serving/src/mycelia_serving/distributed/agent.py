"""The process of one rank: `python -m mycelia_serving.distributed.agent`, started by `startup_agents`.

Settings come as a line of JSON on standard input; it ends when that input does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

import grpc
import numpy as np

from mycelia_serving.distributed import rpc
from mycelia_serving.engine.loaders import ModelOptions, load
from mycelia_serving.wire.proto import serving_pb2 as pb


class Agent:
    """One part of a model, and a port by which the leader runs it."""

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
        self.heard = time.monotonic()
        self._lock = threading.Lock()
        self._server, self._threads = rpc.new_server(4)
        rpc.serve(
            self._server,
            "MSAgent",
            {
                "Predict": self._predict,
                "Exit": self._exit,
                "Ping": self._ping,
                "Pong": lambda _: pb.PongReply(),
            },
        )
        host, port = settings["host"], settings["port"]
        self.address = f"{host}:{rpc.listen(self._server, f'{host}:{port}')}"
        self._leader = rpc.channel(settings["leader"])

    def register(self) -> None:
        """Offers this rank to the leader. Errors: RuntimeError."""
        row = [np.zeros([1 if n == -1 else n for n in x.shape], x.dtype) for x in self.model.inputs]
        outputs = self.model(row)
        spec = pb.AgentSpec(rank_id=self.rank)
        spec.inputs.extend(rpc.to_info(x.dtype, x.shape) for x in self.model.inputs)
        spec.outputs.extend(rpc.to_info(o.dtype, o.shape) for o in outputs)
        self._server.start()
        request = pb.AgentRegisterRequest(agent_spec=[spec], address=self.address)
        reply = rpc.caller(self._leader, "MSDistributedWorker", "AgentRegister")(request, timeout=30)
        if reply.error_msg.error_code:
            raise RuntimeError(reply.error_msg.error_msg.decode(errors="replace"))

    def _predict(self, request: pb.DistributedPredictRequest) -> pb.DistributedPredictReply:
        try:
            arrays = [rpc.to_array(t) for t in request.inputs]
            found = [(a.dtype, a.ndim) for a in arrays]
            if found != [(x.dtype, len(x.shape)) for x in self.model.inputs]:
                raise RuntimeError(f"its part of the model takes {len(self.model.inputs)} other inputs")
            with self._lock:
                outputs = self.model(arrays)
            reply = pb.DistributedPredictReply()
            if request.return_result:
                reply.outputs.extend(rpc.to_tensor(o) for o in outputs)
            return reply
        except Exception as error:
            return pb.DistributedPredictReply(error_msg=rpc.failed(3, error))

    def _ping(self, request: pb.PingRequest) -> pb.PingReply:
        self.heard = time.monotonic()
        return pb.PingReply()

    def _exit(self, request: pb.DistributedExitRequest) -> pb.DistributedExitReply:
        self.ended.set()
        return pb.DistributedExitReply()

    def wait(self) -> None:
        """Until the leader or the user ends it, or the leader is not heard of any more."""
        while not self.ended.wait(0.5):
            if time.monotonic() - self.heard > rpc.SILENCE_S:
                print(f"the agent of rank {self.rank} ends: its leader is gone", file=sys.stderr)
                break

    def leave(self) -> None:
        """Tells the leader."""
        request = pb.AgentExitRequest(address=self.address)
        try:
            rpc.caller(self._leader, "MSDistributedWorker", "AgentExit")(request, timeout=2)
        except grpc.RpcError:
            pass  # it went first
        self.close(1)

    def close(self, grace: float = 0) -> None:
        self._server.stop(grace).wait()
        self._threads.shutdown()
        self._leader.close()


def main() -> int:
    settings = json.loads(sys.stdin.buffer.readline())
    try:
        agent = Agent(settings)
        agent.register()
    except (RuntimeError, grpc.RpcError) as error:
        print(f"the agent of rank {settings['rank']} cannot start: {error}", file=sys.stderr)
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.ended.set())
    threading.Thread(target=_end_with_parent, args=(agent,), daemon=True).start()
    print("ready", flush=True)
    agent.wait()
    agent.leave()
    return 0


def _end_with_parent(agent: Agent) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    agent.ended.set()


if __name__ == "__main__":
    sys.exit(main())
