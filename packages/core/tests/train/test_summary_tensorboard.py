"""`SummaryRecord(tensorboard=True)`: the file that TensorBoard reads, beside MindSpore's.

TensorBoard 2.20 was asked for the same files by hand; here their messages are parsed field by field.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_summary import as_float, decoded, records, values_of

from mycelia import Tensor, nn
from mycelia.engine.base.wire import field
from mycelia.train import SummaryRecord
from mycelia.train.summary import tensorboard
from mycelia.train.summary.events import double, single, text
from mycelia.train.summary.lineage import TrainLineage, UserDefinedInfo
from mycelia.train.summary.values import value


def both(folder) -> tuple[list[dict], list[dict]]:
    """Events of MindSpore's file and of TensorBoard's."""
    (ours,) = folder.glob("*.summary.*_MS")
    (theirs,) = folder.glob("*tfevents*")
    assert theirs.name == ours.name.replace(".events.summary.", ".tfevents.")
    return records(ours), records(theirs)


def plugin(content: dict) -> tuple[str, bytes]:
    data = decoded(decoded(content[9][0])[1][0])
    return data[1][0].decode(), data.get(2, [b""])[0]


def tensor(content: dict) -> np.ndarray:
    found = decoded(content[8][0])
    sizes = [decoded(one)[1][0] for one in decoded(found[2][0]).get(2, [])] if 2 in found else []
    return np.frombuffer(found[4][0], {1: "<f4", 2: "<f8"}[found[1][0]]).reshape(sizes)


def test_values_of_both_files_are_the_same(tmp_path):
    with SummaryRecord(str(tmp_path), tensorboard=True) as record:
        for step, loss in ((3, 0.5), (4, math.nan), (5, -math.inf)):
            record.add_value("scalar", "loss", Tensor(loss))
            record.add_value("tensor", "t", Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, np.inf]]))
            record.add_value("histogram", "h", Tensor([1.0, 2.0, 3.0, np.nan, np.inf, 7.0]))
            record.add_value("image", "i", Tensor(np.zeros((9, 1, 2, 3), np.float32)))
            record.record(step)
    ours, theirs = both(tmp_path)
    assert theirs[0][3] == [b"brain.Event:2"]
    assert [one[2] for one in theirs[1:]] == [[3], [4], [5]]
    assert [one[1] for one in theirs[1:]] == [one[1] for one in ours[1:]]
    for mine, its in zip(map(values_of, ours[1:]), map(values_of, theirs[1:]), strict=True):
        assert list(mine) == list(its)
        assert its["loss"][2] == mine["loss"][3] and plugin(its["loss"])[0] == "scalars"
        assert its["i"][4] == mine["i"][4]
        assert tensor(its["t"]).tolist() == [[1, 2, 3], [4, 5, math.inf]]
        assert plugin(its["h"])[0] == "histograms"
        assert tensor(its["h"]).tolist() == [[1, 4, 3], [4, 7, 1]]  # left, right, count
    assert [as_float(values_of(one)["loss"][2][0]) for one in theirs[1::2]] == [0.5, -math.inf]


def test_hyperparameters_are_written_at_the_end(tmp_path):
    with SummaryRecord(str(tmp_path), tensorboard=True) as record:
        record.add_value("train_lineage", "lineage", TrainLineage(optimizer="Adam", learning_rate=0.02))
        record.add_value("custom_lineage_data", "own", UserDefinedInfo({"<b>": "x", "depth": 3}))
        record.add_value("scalar", "s", Tensor(1.0))
        record.record(1)
    _, (_, _, event) = both(tmp_path)
    values = values_of(event)
    name, content = plugin(values["_hparams_/session_start_info"])
    start = decoded(decoded(content)[3][0])
    told = {e[1][0].decode(): decoded(e[2][0]) for e in map(decoded, start[1])}
    assert name == "hparams"
    assert told["optimizer"] == {3: [b"Adam"]} and told["<b>"] == {3: [b"x"]}
    assert {k: as_float(v[2][0]) for k, v in told.items() if 2 in v} == {
        "learning_rate": 0.02, "epoch": 0, "depth": 3,
    }  # fmt: skip
    assert decoded(plugin(values["_hparams_/session_end_info"])[1]) == {4: [b"\x08\x01"]}


def test_graphs_become_those_of_tensorflow(tmp_path):
    net = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
    net.compile(Tensor(np.ones((2, 3), np.float32)))
    with SummaryRecord(str(tmp_path), network=net, tensorboard=True) as record:
        record.record(1)
    _, (_, event) = both(tmp_path)
    nodes = [decoded(one) for one in decoded(event[4][0])[1]]
    by_name = {one[1][0]: one for one in nodes}
    assert len(by_name) == len(nodes)
    ends = [end for one in nodes for end in one.get(3, [])]
    assert ends and set(ends) <= by_name.keys()
    kinds = [one[2][0] for one in nodes]
    assert kinds.count(b"dense") == 2 and kinds.count(b"relu") == 1
    relu = nodes[kinds.index(b"relu")]
    attributes = {e[1][0]: decoded(e[2][0]) for e in map(decoded, relu[5])}
    assert attributes[b"dtype"] == {6: [1]}
    (shape,) = decoded(attributes[b"_output_shapes"][1][0])[7]
    assert [decoded(size)[1] for size in decoded(shape)[2]] == [[2], [4]]
    # A parameter lies in the scope that takes it first, and is there once.
    weights = [name for name in by_name if name.endswith(b"weight")]
    assert len(weights) == 2 and all(b"/" in name for name in weights)


def test_what_has_no_place_there_is_left_out(tmp_path, caplog):
    landscape = value("l", field(10, b""))
    scalar = value("s", single(3, 1.0))
    assert tensorboard.event(double(1, 1.0) + field(2, 1) + field(5, landscape)) == b""
    kept = tensorboard.event(double(1, 1.0) + field(2, 1) + field(5, landscape + scalar))
    assert list(values_of(decoded(kept))) == ["s"]
    with SummaryRecord(str(tmp_path), tensorboard=True) as record:
        record.add_value("graph", "g", b"\xff\xff no graph")
        record.add_value("scalar", "s", Tensor(1.0))
        assert record.record(1)
    ours, theirs = both(tmp_path)
    assert len(ours) == 3 and len(theirs) == 2  # MindSpore's keeps the bytes as they are


@pytest.mark.parametrize(
    "message",
    [
        double(1, 1.0) + field(5, field(1, text(1, "t") + field(8, field(1, 2) + field(3, b"\0" * 4)))),
        double(1, 1.0) + field(5, field(1, text(1, "t") + field(8, field(3, b"\0" * 3)))),
        double(1, 1.0) + field(5, field(1, text(1, "t") + field(9, 4))),
        double(1, 1.0) + field(5, field(1, text(1, "t") + field(9, field(1, single(1, 1.0))))),
        double(1, 1.0) + field(5, b"\x0a\x7f"),
        single(1, 1.0) + field(5, field(1, text(1, "t") + single(3, 1.0))),
    ],
)
def test_broken_events_are_refused(message):
    with pytest.raises(ValueError):
        tensorboard.event(message)


def test_a_full_disk_ends_tensorboards_file_alone(tmp_path):
    with SummaryRecord(str(tmp_path), tensorboard=True, max_file_size=150) as record:
        for step in range(10):
            record.add_value("scalar", "s", Tensor(1.0))
            record.record(step)
    ours, theirs = both(tmp_path)
    assert 1 < len(theirs) < len(ours) < 11
    with pytest.raises(TypeError, match="tensorboard must be a bool"):
        SummaryRecord(str(tmp_path), tensorboard="yes")
