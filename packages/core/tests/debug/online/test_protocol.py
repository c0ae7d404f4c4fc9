"""What a training says to MindInsight's commands, as MindInsight 2.3.1 sent them to one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("grpc", reason="the debugger's connection is gRPC")

import grpc

from mycelia.debug.messages import debugger_pb2 as messages
from mycelia.debug.messages.values import from_messages
from mycelia.debug.online.channel import SERVICE, joined

TRAINING = """
import numpy as np
import mycelia as ms
from mycelia import nn, ops

ms.set_context(mode=ms.GRAPH_MODE)

class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(3, 2)

    def construct(self, x):
        return ops.log(self.fc(x))

net = Net()
net.fc.weight.set_data(ms.Tensor(np.ones((2, 3), np.float32)))  # a logarithm of less than 0, for any bias
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
for _ in range(4):
    step(ms.Tensor(np.full((1, 3), -5, np.float32)), ms.Tensor(np.ones((1, 2), np.float32)))
print("trained")
"""
STREAMS = {
    "SendGraph": messages.Chunk, "SendMultiGraphs": messages.Chunk, "SendTensors": messages.TensorProto,
    "SendWatchpointHits": messages.WatchpointHit, "SendTensorBase": messages.TensorBase,
    "SendTensorStats": messages.TensorSummary, "SendAnswer": messages.Chunk,
}  # fmt: skip


class Service:
    """Answers WaitCMD by what `replies` yields, and keeps what comes meanwhile."""

    def __init__(self, replies):
        self.replies, self.seen = replies(self), defaultdict(list)
        self.server = grpc.server(ThreadPoolExecutor(8))
        handlers = {name: self.stream(name, kind) for name, kind in STREAMS.items()}
        handlers["WaitCMD"] = self.unary(messages.Metadata, self.wait)
        for name, kind in (("SendMetadata", messages.Metadata), ("SendHeartbeat", messages.Heartbeat)):
            handlers[name] = self.unary(kind, lambda request, name=name: self.keep(name, request))
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def unary(self, kind, answer):
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: answer(request),
            request_deserializer=kind.FromString, response_serializer=lambda m: m.SerializeToString(),
        )  # fmt: skip

    def stream(self, name, kind):
        return grpc.stream_unary_rpc_method_handler(
            lambda requests, context: self.keep(name, list(requests)),
            request_deserializer=kind.FromString, response_serializer=lambda m: m.SerializeToString(),
        )  # fmt: skip

    def keep(self, name, request):
        self.seen[name].append(request)
        return messages.EventReply(status=messages.OK)

    def wait(self, metadata):
        self.seen["WaitCMD"].append(metadata)
        return next(self.replies, messages.EventReply(exit=True))


def run(replies):
    service = Service(replies)
    known = {"ENABLE_MS_DEBUGGER": "1", "MS_DEBUGGER_PORT": str(service.port)}
    known["MYCELIA_DEBUGGER_TIMEOUT"] = "600"  # a busy machine is no service that is gone
    try:
        ran = subprocess.run(
            [sys.executable, "-c", TRAINING], env={**os.environ, **known}, capture_output=True, text=True
        )
    finally:
        service.server.stop(0)
    assert ran.returncode == 0, ran.stderr
    return service.seen, ran.stdout


def step(count=1):
    return messages.EventReply(run_cmd=messages.RunCMD(run_level="step", run_steps=count))


def view(level, *tensors):
    asked = [messages.TensorProto(**one) for one in tensors]
    return messages.EventReply(view_cmd=messages.ViewCMD(tensors=asked, level=level))


def watch(number, condition, *nodes, **params):
    asked = messages.WatchCondition(condition=condition)
    for name, value in params.items():
        asked.params.add(name=name, **({"text": value} if isinstance(value, str) else {"value": value}))
    found = [messages.WatchNode(node_name=name, node_type=kind) for name, kind in nodes]
    return messages.EventReply(set_cmd=messages.SetCMD(id=number, watch_nodes=found, watch_condition=asked))


def test_a_session_as_mindinsight_has_it():
    log = {}

    def replies(service):
        (graph,) = [messages.GraphProto.FromString(t) for t in joined(service.seen["SendGraph"][0], 1 << 20)]
        log["name"] = next(n.full_name for n in graph.node if n.op_type == "Log")
        weight = f"Default/network/{next(p.name for p in graph.parameters if p.name.endswith('weight'))}"
        yield watch(1, 13, (log["name"], "Log"))
        yield messages.EventReply(run_cmd=messages.RunCMD(run_level="recheck"))
        log["after recheck"] = list(service.seen["SendWatchpointHits"])
        yield step(0)  # a pause
        log["after pause"] = service.seen["WaitCMD"][-1].cur_step
        yield step()
        log["hits"] = service.seen["SendWatchpointHits"][-1]
        yield watch(2, 15, (weight, "Parameter"), max_gt=-100.0)
        yield step()
        log["weight"] = [
            hit.tensor.node_name for hit in service.seen["SendWatchpointHits"][-1] if hit.id == 2
        ]
        both = [{"node_name": weight, "slot": "0", "truncate": True, "iter": i} for i in ("", "prev")]
        yield view(0, *both, {"node_name": "nowhere", "slot": "0"})
        yield view(1, {"node_name": log["name"], "slot": "0"})
        yield view(2, {"node_name": log["name"], "slot": "0"})
        yield messages.EventReply(run_cmd=messages.RunCMD(run_level="node", node_name=""))
        log["node"] = service.seen["WaitCMD"][-1].cur_node

    seen, output = run(replies)
    assert log["after recheck"] == [] and log["after pause"] == 0
    assert [(h.id, h.tensor.node_name, h.error_code) for h in log["hits"]] == [(1, log["name"], 0)]
    assert len(log["weight"]) == 1 and log["weight"][0].endswith("weight") and "/" not in log["weight"][0]
    (now, a), (before, b), (_, nothing) = from_messages(seen["SendTensors"][0])
    assert now.node_name == before.node_name and before.iter == "prev" and a.shape == b.shape == (2, 3)
    assert nothing is None
    ((summary,),) = seen["SendTensorStats"]
    assert summary.statistics.count == 2 and list(summary.tensor_base.shape) == [1, 2]
    assert summary.statistics.nan_count > 0
    ((base,),) = seen["SendTensorBase"]
    assert base.data_type == 11 and base.data_size == 8
    assert log["node"] and "trained" not in output  # it was ended in its third step
    assert {m.backend for m in seen["WaitCMD"]} == {"GPU"}


def test_conditions_beyond_mindspores_are_checked_in_the_training():
    log = {}

    def replies(service):
        (graph,) = [messages.GraphProto.FromString(t) for t in joined(service.seen["SendGraph"][0], 1 << 20)]
        name = next(n.full_name for n in graph.node if n.op_type == "Log")
        weight = f"Default/network/{next(p.name for p in graph.parameters if p.name.endswith('weight'))}"
        yield watch(1, 106, (name, "Log"))
        yield watch(2, 107, (weight, "Parameter"), expression="nan > previous.nan and count == 6")
        yield watch(3, 107, (weight, "Parameter"), expression="max >")  # passed over
        yield step()
        log["first"] = service.seen["SendWatchpointHits"][-1]
        yield step()
        log["second"] = service.seen["SendWatchpointHits"][-1]

    run(replies)
    assert [(h.id, h.error_code) for h in sorted(log["first"], key=lambda h: h.id)] == [(1, 0), (2, 4)]
    (born,) = [h for h in log["first"] if h.id == 1]
    assert born.watch_condition.reason == "NaN or infinities of finite inputs"
    (hit,) = log["second"]  # the weight is NaN by now, so that the operator makes nothing new
    assert (hit.id, hit.error_code) == (2, 0)
    assert hit.watch_condition.reason == "nan = 6, previous.nan = 0, count = 6"
    (sent,) = hit.watch_condition.params
    assert sent.text.startswith("nan >") and sent.hit and sent.actual_value == 1


def test_commands_that_are_none_are_passed_over():
    def replies(service):
        yield watch(1, 99, ("x", "Log"))
        yield watch(2, 15, ("x", "Log"), max_gt=float("nan"))
        yield watch(3, 15, ("x", "Log"), nothing=1.0)
        yield view(0, {"node_name": "x" * 1000, "slot": "-1", "iter": "x"}, {"node_name": "", "slot": ""})
        yield messages.EventReply(run_cmd=messages.RunCMD(run_level="recheck", run_steps=2**31 - 1))
        yield messages.EventReply(ask_cmd=messages.AskCMD(question="rerun", arguments="{"))
        yield step(-1)

    seen, output = run(replies)
    assert "trained" in output
    (answer,) = [messages.Answer.FromString(text) for text in joined(seen["SendAnswer"][0], 1 << 20)]
    assert "JSONDecodeError" in answer.error
    assert [m.tensor_content for m in seen["SendTensors"][0]] == [b"", b""]
    assert seen["SendMetadata"][-1].training_done and seen["SendMetadata"][-1].cur_step == 4


def test_a_service_that_has_no_commands_is_left():
    def replies(service):
        while True:
            yield messages.EventReply(status=messages.PENDING)

    seen, output = run(replies)
    assert "trained" in output and len(seen["WaitCMD"]) == 6
