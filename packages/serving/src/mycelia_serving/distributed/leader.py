"""The end of a distributed model in its worker: a model to the engine, what agents connect to."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from concurrent import futures
from dataclasses import dataclass

import numpy as np

from mycelia_serving.clock import CLOCK
from mycelia_serving.distributed import messages
from mycelia_serving.distributed.ranks import Rank, read_rank_table
from mycelia_serving.engine.loaders import ModelInput
from mycelia_serving.rpc.calls import Calls
from mycelia_serving.rpc.connection import LONGEST_BODY, Connection, Kind
from mycelia_serving.rpc.listener import Listener, frames_of_a_stranger
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

    def __init__(self, rank: Rank, address: str, spec: pb.AgentSpec, link: Connection) -> None:
        self.rank = rank
        self.address = address
        self.inputs = tuple(messages.to_input(i, info) for i, info in enumerate(spec.inputs))
        self.link = link
        self.seen = True  # a sign of life since the last look
        self.missed = 0  # looks without one
        self.calls = Calls(link, Kind.PREDICT)

    def predict(self, request: pb.DistributedPredictRequest) -> futures.Future:
        """Its reply; None if the agent is lost."""
        future: futures.Future = futures.Future()
        self.calls.start(request.SerializeToString(), future.set_result)
        return future

    def dismiss(self) -> None:
        """Tells it to end."""
        self.link.send((Kind.EXIT, 0, b""))
        self.link.flush(PATIENCE_S)
        self.link.close()


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
        self._listener = Listener(options.address, self._serve)
        self.port = self._listener.port
        self._looks = CLOCK.alarm(self._look)

    def start(self) -> None:
        """Waits for all agents."""
        self._listener.start()
        self._looks.by(time.monotonic() + messages.PING_S)
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
        tensors = [messages.to_tensor(a) for a in arrays]
        width = size // self._layout.stage_size
        for first in range(0, size, width):
            calls = []
            for number in range(first, first + width):
                request = pb.DistributedPredictRequest(inputs=tensors, return_result=number == first)
                calls.append((agents[number], agents[number].predict(request)))
            replies = [self._reply(agent, call) for agent, call in calls]
            tensors = list(replies[0].outputs)
        return tuple([np.array(messages.to_array(t)) for t in tensors])

    def _reply(self, agent: _Agent, call: futures.Future) -> pb.DistributedPredictReply:
        number = agent.rank.number
        body = call.result()
        if body is None:
            self._lose(agent, "it does not answer")
            raise RuntimeError(f"the agent of rank {number} was lost; new agents are waited for")
        reply = pb.DistributedPredictReply.FromString(body)
        problem = messages.error_text(reply.error_msg)
        if problem:
            raise RuntimeError(f"the agent of rank {number} failed: {problem}")
        return reply

    # ---- agents come and go --------------------------------------------------------------------------------

    def _serve(self, link: Connection, where: str) -> None:
        """Takes the frames of an agent, or of a process that starts agents, until it ends."""
        agent: _Agent | None = None
        reason = "its connection has ended"
        for kind, number, body in frames_of_a_stranger(link):
            if agent is not None:
                agent.seen = True
            if kind == Kind.RESULTS and agent is not None:
                agent.calls.answer(number, body)
            elif kind == Kind.PING:
                link.send((Kind.PONG, 0, pb.PingReply().SerializeToString()))
            elif kind == Kind.REGISTER and agent is None:
                agent = self._register(link, pb.AgentRegisterRequest.FromString(body))
                if agent is None:
                    link.flush(PATIENCE_S)
                    return
            elif kind == Kind.CONFIGURE:
                link.send((Kind.CONFIGURATION, number, self._configuration().SerializeToString()))
            elif kind == Kind.FAILED:
                self._fail()
            else:
                reason = "it ended"
                break
        if agent is not None:
            self._lose(agent, reason)
            agent.calls.lose()

    def _configuration(self) -> pb.AgentConfigAcquireReply:
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

    def _register(self, link: Connection, request: pb.AgentRegisterRequest) -> _Agent | None:
        """The agent of a request to join; None if it is refused."""
        agent, problem = None, "a request names one rank"
        if len(request.agent_spec) == 1:
            (spec,) = request.agent_spec
            with self._change:
                problem = self._objection(spec)
                if not problem:
                    agent = _Agent(self._table.ranks[spec.rank_id], request.address, spec, link)
                    if self.inputs and not spec.rank_id and agent.inputs != self.inputs:
                        agent, problem = None, "its inputs differ from those before"
                if agent is not None:
                    link.longest = LONGEST_BODY
                    self._agents[spec.rank_id] = agent
                    self._failed = ""
        reply = pb.AgentRegisterReply()
        if problem:
            reply.error_msg.CopyFrom(messages.failed(2, problem))
        link.send((Kind.REGISTERED, 0, reply.SerializeToString()))
        with self._change:
            self._change.notify_all()
        return agent

    def _objection(self, spec: pb.AgentSpec) -> str:
        """Why a rank cannot join; empty if it can."""
        if not 0 <= spec.rank_id < self._layout.rank_size:
            return f"there is no rank {spec.rank_id}"
        return f"rank {spec.rank_id} is there already" if spec.rank_id in self._agents else ""

    def _fail(self) -> None:
        with self._change:
            self._failed = "see what they printed"
            self._change.notify_all()

    def _lose(self, agent: _Agent, reason: str) -> None:
        """One is gone, so all others end, too: their parts of the model wait for each other."""
        with self._change:
            if self._agents.get(agent.rank.number) is not agent:
                return
            others = [a for a in self._agents.values() if a is not agent]
            self._agents.clear()
        if not self._closed:
            log.error("the agent of rank %d at %s is lost: %s", agent.rank.number, agent.address, reason)
        agent.link.close()
        for other in others:
            other.dismiss()

    def _look(self, now: float) -> float:
        """Finds agents that are silent. Each look counts, not the time: see `Node`."""
        with self._change:
            agents = list(self._agents.values())
        for agent in agents:
            agent.missed = 0 if agent.seen else agent.missed + 1
            agent.seen = False
            if agent.missed >= messages.MISSED:
                self._lose(agent, f"no sign of life for {agent.missed} seconds")
        return now + messages.PING_S

    def close(self) -> None:
        """Ends the agents and the port."""
        self._looks.cancel()
        with self._change:
            self._closed = True
            agents = list(self._agents.values())
            self._agents.clear()
        for agent in agents:
            agent.dismiss()
        self._listener.close()
