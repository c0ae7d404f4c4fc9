"""The end of a distributed model in its worker: a model to the engine, the boss of the agents."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import grpc
import numpy as np

from mycelia_serving.distributed import rpc
from mycelia_serving.distributed.ranks import Rank, read_rank_table
from mycelia_serving.engine.loaders import ModelInput
from mycelia_serving.servable.declaration import ModelDeclaration
from mycelia_serving.wire.proto import serving_pb2 as pb

log = logging.getLogger("mycelia_serving")

PATIENCE_S = 2.0  # for an agent that is told to end
_LOOK_S = 0.2  # how often a wait for agents lets Ctrl-C through


@dataclass(frozen=True, slots=True)
class LeaderOptions:
    """Where a leader listens for agents, who they are, and how long it waits: 0 seconds are for ever."""

    rank_table: str
    address: str
    wait_seconds: float = 0


class _Agent:
    """One rank that is there."""

    def __init__(self, rank: Rank, address: str, spec: pb.AgentSpec) -> None:
        self.rank = rank
        self.address = address
        self.inputs = tuple(rpc.to_input(i, info) for i, info in enumerate(spec.inputs))
        self.outputs = len(spec.outputs)
        self.missed = 0
        self.channel = rpc.channel(address)
        self.predict = rpc.caller(self.channel, "MSAgent", "Predict")
        self.ping = rpc.caller(self.channel, "MSAgent", "Ping")
        self.exit = rpc.caller(self.channel, "MSAgent", "Exit")


class Leader:
    """A `LoadedModel` that agents compute. Errors of `start`: RuntimeError."""

    def __init__(self, declared: ModelDeclaration, options: LeaderOptions) -> None:
        self._declared = declared
        self._layout = declared.ranks
        self._options = options
        self._table = read_rank_table(options.rank_table, self._layout.rank_size)
        self._agents: dict[int, _Agent] = {}
        self._change = threading.Condition()
        self._closed = False
        self._failed = ""  # why agents could not be started
        self.inputs: Sequence[ModelInput] = ()
        self.runs = self._layout.stage_size if self._layout.pipeline else 1  # calls at once
        self._server, self._threads = rpc.new_server(8)
        rpc.serve(
            self._server,
            "MSDistributedWorker",
            {
                "AgentConfigAcquire": self._configure,
                "AgentRegister": self._register,
                "AgentExit": self._leave,
                "AgentFailed": self._fail,
                "Ping": lambda request: pb.PingReply(),
                "Pong": lambda request: pb.PongReply(),
            },
        )
        self.port = rpc.listen(self._server, options.address)

    def start(self) -> None:
        """Waits for all agents."""
        self._server.start()
        threading.Thread(target=self._watch, name="serving-leader", daemon=True).start()
        size, seconds = self._layout.rank_size, self._options.wait_seconds
        end = time.monotonic() + seconds
        log.info("waiting for %d agents at port %d", size, self.port)
        with self._change:
            while len(self._agents) < size:
                if self._failed:
                    raise RuntimeError(
                        f"The agents of '{self._declared.key}' could not be started: {self._failed}"
                    )
                if seconds and time.monotonic() > end:
                    raise RuntimeError(
                        f"Only {len(self._agents)} of {size} agents of '{self._declared.key}' came within "
                        f"{seconds} seconds"
                    )
                self._change.wait(_LOOK_S)
            self.inputs = self._agents[0].inputs

    # ---- the model -----------------------------------------------------------------------------------------

    def __call__(self, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        with self._change:
            agents = dict(self._agents)
        size = self._layout.rank_size
        if len(agents) < size:
            raise RuntimeError(f"{size - len(agents)} of its {size} agents are not there")
        tensors = [rpc.to_tensor(a) for a in arrays]
        width = size // self._layout.stage_size
        for first in range(0, size, width):
            calls = []
            for number in range(first, first + width):
                request = pb.DistributedPredictRequest(inputs=tensors, return_result=number == first)
                calls.append((agents[number], agents[number].predict.future(request)))
            replies = [self._reply(agent, call) for agent, call in calls]
            tensors = list(replies[0].outputs)
        return tuple([np.array(rpc.to_array(t)) for t in tensors])

    def _reply(self, agent: _Agent, call: grpc.Future) -> pb.DistributedPredictReply:
        number = agent.rank.number
        try:
            reply = call.result()
        except (grpc.RpcError, grpc.FutureCancelledError) as error:
            self._lose(agent, "it does not answer")
            raise RuntimeError(f"the agent of rank {number} was lost; new agents are waited for") from error
        if reply.error_msg.error_code:
            text = reply.error_msg.error_msg.decode(errors="replace")
            raise RuntimeError(f"the agent of rank {number} failed: {text}")
        return reply

    # ---- agents come and go --------------------------------------------------------------------------------

    def _configure(self, request: pb.AgentConfigAcquireRequest) -> pb.AgentConfigAcquireReply:
        declared, layout = self._declared, self._layout
        reply = pb.AgentConfigAcquireReply(rank_table_content=self._table.text)
        for rank in self._table.ranks:
            reply.rank_list.add(ip=rank.host, device_id=rank.device_id)
        common = reply.common_meta
        common.servable_name, common.model_key = declared.key, declared.key
        common.with_batch_dim = declared.with_batch_dim
        common.without_batch_dim_inputs.extend(declared.unbatched)
        reply.distributed_meta.rank_size = layout.rank_size
        reply.distributed_meta.stage_size = layout.stage_size
        return reply

    def _register(self, request: pb.AgentRegisterRequest) -> pb.AgentRegisterReply:
        with self._change:
            for spec in request.agent_spec:
                number = spec.rank_id
                if not 0 <= number < self._layout.rank_size:
                    return pb.AgentRegisterReply(error_msg=rpc.failed(2, f"there is no rank {number}"))
                if number in self._agents:
                    return pb.AgentRegisterReply(error_msg=rpc.failed(2, f"rank {number} is there already"))
                agent = _Agent(self._table.ranks[number], request.address, spec)
                if self.inputs and not number and agent.inputs != self.inputs:
                    return pb.AgentRegisterReply(
                        error_msg=rpc.failed(2, "its inputs differ from those before")
                    )
                self._agents[number] = agent
            self._failed = ""
            self._change.notify_all()
        return pb.AgentRegisterReply()

    def _leave(self, request: pb.AgentExitRequest) -> pb.AgentExitReply:
        with self._change:
            leaving = [a for a in self._agents.values() if request.address in ("", a.address)]
        for agent in leaving:
            self._lose(agent, "it ended")
        return pb.AgentExitReply()

    def _fail(self, request: pb.AgentFailedRequest) -> pb.AgentFailedReply:
        with self._change:
            self._failed = "see what they printed"
            self._change.notify_all()
        return pb.AgentFailedReply()

    def _lose(self, agent: _Agent, reason: str) -> None:
        """One is gone, so all others end, too: their parts of the model wait for each other."""
        with self._change:
            if self._agents.get(agent.rank.number) is not agent:
                return
            others = [a for a in self._agents.values() if a is not agent]
            self._agents.clear()
        if not self._closed:
            log.error("the agent of rank %d at %s is lost: %s", agent.rank.number, agent.address, reason)
        agent.channel.close()
        self._dismiss(others)

    def _dismiss(self, agents: list[_Agent]) -> None:
        calls = [(a, a.exit.future(pb.DistributedExitRequest(), timeout=PATIENCE_S)) for a in agents]
        for agent, call in calls:
            try:
                call.result()
            except grpc.RpcError:
                log.info("the agent of rank %d was gone before it was told to end", agent.rank.number)
            agent.channel.close()

    def _watch(self) -> None:
        """Asks each agent for a sign of life."""
        while not self._closed:
            time.sleep(rpc.PING_S)
            with self._change:
                agents = list(self._agents.values())
            for agent in agents:
                try:
                    agent.ping(pb.PingRequest(), timeout=rpc.PING_S)
                    agent.missed = 0
                except (grpc.RpcError, ValueError):  # ValueError: the channel was closed meanwhile
                    agent.missed += 1
                    if agent.missed >= rpc.MISSED:
                        self._lose(agent, f"no sign of life for {agent.missed} seconds")

    def close(self) -> None:
        """Ends the agents and the port."""
        with self._change:
            self._closed = True
            agents = list(self._agents.values())
            self._agents.clear()
        self._dismiss(agents)
        self._server.stop(0).wait()
        self._threads.shutdown()
