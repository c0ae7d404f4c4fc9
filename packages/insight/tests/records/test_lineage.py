"""Lineage events of real MindSpore, of ours and of TensorBoard; damaged ones are errors, never crashes."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

from mycelia.train.summary.lineage import DatasetGraph, EvaluationLineage, TrainLineage, UserDefinedInfo
from mycelia_insight.records import lineage
from mycelia_insight.runs.library import Library

sys.path.insert(0, str(Path(__file__).parents[1]))
from event_files import TENSORBOARD, double, event, field, framed, number, scalar, write

FIXTURE = Path(__file__).parents[1] / "fixtures" / "summary"


def library_of(base, tmp_path) -> Library:
    found = Library(str(base), str(tmp_path / "workspace"), 0)
    found.look()
    while found.read():
        pass
    return found


def of(library: Library, name: str):
    run = library.get(name)
    return library.lineages.of(run, run.tags())


def test_lineage_of_mindspore(tmp_path):
    expected = json.loads((FIXTURE / "run1.expected.json").read_text())["lineage"]
    found = of(library_of(FIXTURE, tmp_path), "./run1")
    own = {name: value for name, value in found.fields.items() if name in expected}
    assert {**own, "metric": found.metrics, "user_defined": found.user} == expected
    assert found.dataset["op_type"] == "Batch" if "op_type" in found.dataset else found.dataset["children"]


def test_what_core_writes_is_read_back():
    train = TrainLineage(
        optimizer="Adam", learning_rate=0.1, loss_function="L1", epoch=-1, batch_size=7, dataset_path="/a",
        dataset_size=9, network="Net", loss=0.3, model_path='{"ckpt": "x"}', model_size=1 << 40,
    )  # fmt: skip
    assert lineage.train(train.SerializeToString()) == {
        "optimizer": "Adam", "learning_rate": 0.1, "loss_function": "L1", "epoch": -1,
        "parallel_mode": "stand_alone", "device_num": 1, "batch_size": 7, "train_dataset_path": "/a",
        "train_dataset_count": 9, "network": "Net", "loss": 0.3, "model_path": '{"ckpt": "x"}',
        "model_size": 1 << 40,
    }  # fmt: skip
    evaluated = EvaluationLineage('{"acc": 0.5, "f1": [1]}', "/b", 3).SerializeToString()
    assert lineage.evaluation(evaluated) == (
        {"test_dataset_path": "/b", "test_dataset_count": 3}, {"acc": 0.5, "f1": "[1]"},
    )  # fmt: skip
    given = {"a": 1, "b": 0.5, "c": "text", "é": -4}
    assert lineage.user_defined(UserDefinedInfo(given).SerializeToString()) == given
    graph = {
        "op_type": "Batch", "drop": True, "batch_size": 4, "rate": 0.5,
        "children": [{"op_type": "Map", "operations": [{"tensor_op_name": "Cast"}],
                      "sampler": {"sampler_name": "S", "indices": [1, 300], "weights": [0.5]}}],
    }  # fmt: skip
    found = lineage.dataset_graph(DatasetGraph(graph).SerializeToString())
    (child,) = found["children"]
    assert (found["op_type"], found["drop"], found["batch_size"], found["rate"]) == ("Batch", True, 4, 0.5)
    assert child["operations"] == [{"tensor_op_name": "Cast"}]
    assert child["sampler"]["size"] == [1, 300] and child["sampler"]["weights"] == [0.5]


def hparams(tag: str, content: bytes) -> bytes:
    told = field(1, tag) + field(9, field(1, field(1, "hparams") + field(2, content)))
    return framed(event(0, 1.0, field(5, field(1, told))))


def test_parameters_of_tensorboard(tmp_path):
    values = {"lr": double(2, 0.01), "layers": double(2, 3.0), "act": field(3, "relu"), "bias": number(4, 1)}
    start = field(3, b"".join(field(1, field(1, n) + field(2, v)) for n, v in values.items()))
    experiment = field(2, field(5, field(1, field(2, "accuracy"))))
    simple = framed(event(4, 2.0, field(5, field(1, field(1, "accuracy") + b"\x15\x00\x00\x40\x3f"))))
    write(
        tmp_path / "runs" / "tb",
        [hparams("_hparams_/experiment", experiment), hparams("_hparams_/session_start_info", start), simple],
        first=TENSORBOARD,
    )
    found = of(library_of(tmp_path / "runs", tmp_path), "./tb")
    assert found.user == {"lr": 0.01, "layers": 3, "act": "relu", "bias": True}
    assert found.metrics == {"accuracy": 0.75}


def test_damaged_messages_are_errors():
    rng = random.Random(3)
    whole = [
        (lineage.train, TrainLineage(optimizer="Adam", learning_rate=0.1, loss=1.0).SerializeToString()),
        (lineage.evaluation, EvaluationLineage('{"a": 1}', "/b", 3).SerializeToString()),
        (lineage.user_defined, UserDefinedInfo({"a": 1, "b": 2.0, "c": "x"}).SerializeToString()),
        (lineage.dataset_graph, DatasetGraph({"op_type": "A", "children": [{"n": 1}]}).SerializeToString()),
        (
            lineage.hparams,
            field(9, field(1, field(2, field(3, field(1, field(1, "a") + field(2, double(2, 1))))))),
        ),
    ]
    refused = 0
    for _ in range(4000):
        read, data = rng.choice(whole)
        data = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            read(bytes(data[: rng.randint(1, len(data))]))
        except ValueError:
            refused += 1
    assert refused > 1000


def test_a_graph_without_end_is_refused():
    data = b""
    for _ in range(300):
        data = field(1, data)
    with pytest.raises(ValueError, match="deeper than 100"):
        lineage.dataset_graph(data)


def test_a_damaged_lineage_leaves_the_rest(tmp_path):
    bad = framed(event(0, 1.0, field(6, b"\xff\xff")))
    good = framed(event(0, 2.0, field(6, TrainLineage(optimizer="Adam").SerializeToString())))
    write(tmp_path / "runs" / "a", [scalar("loss", 1, 0.5)])
    path = tmp_path / "runs" / "a" / "events.out.events.summary.1700000001.0.host_lineage"
    path.write_bytes(bad + good)
    assert of(library_of(tmp_path / "runs", tmp_path), "./a").fields["optimizer"] == "Adam"
