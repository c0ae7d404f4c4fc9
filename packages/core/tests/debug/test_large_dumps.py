"""Questions to a dump of thousands of records: how often they look at records and nodes, not how long."""

from __future__ import annotations

import csv

import pytest

from mycelia import debug
from mycelia.debug.analyzer import Node
from mycelia.debug.reading.folders import Step

OPERATORS, ITERATIONS = 1500, 2
HEADER = "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value"


class Counted(list):
    """A list that counts what is taken out of it by going through it."""

    taken = 0

    def __iter__(self):
        for one in super().__iter__():
            Counted.taken += 1
            yield one


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("large")
    for iteration in range(ITERATIONS):
        step = path / "rank_0" / "net" / "0" / str(iteration)
        step.mkdir(parents=True)
        with open(step / "statistic.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(HEADER.split(","))
            for i in range(OPERATORS):
                for io in ("input", "output"):
                    value = i + iteration
                    writer.writerow(
                        ["ReLU", f"Default_ReLU-op{i}", 0, 0, f"{i:016}", io, 0, 4, "float32", "(1,)", value,
                         value]
                    )  # fmt: skip
    return path


def test_tensors_of_all_nodes_take_one_pass(folder, monkeypatch):
    read = Step.records
    monkeypatch.setattr(Step, "records", lambda step: Counted(read(step)))
    monkeypatch.setattr(Counted, "taken", 0)
    dump = debug.DumpAnalyzer(folder)
    assert len(dump.nodes) == OPERATORS
    for node in dump.nodes:
        made = node.get_output_tensors()
        assert [t.iteration for t in made] == [0, 1]
        number = int(node.name.rpartition("op")[2])
        assert [t.statistics().max for t in made] == [number, number + 1]
        (second,) = node.get_input_tensors(iterations=[1, 7])
        assert (second.iteration, second.io, second.record.name) == (1, "input", node.name)
    records = 2 * OPERATORS * ITERATIONS
    assert records <= Counted.taken <= 2 * records


def test_neighbours_of_all_nodes_take_one_pass(folder, monkeypatch):
    dump = debug.DumpAnalyzer(folder)
    chain = [
        Node(dump, rank, 0, f"op{i}", "ReLU", (), (f"op{i - 1}", "op0", f"op{i - 1}") if i else ())
        for rank in range(2)
        for i in range(OPERATORS)
    ]
    monkeypatch.setitem(vars(dump), "nodes", Counted(chain))
    monkeypatch.setattr(Counted, "taken", 0)
    for node in chain[:OPERATORS]:
        read = dict.fromkeys(sorted(node.feeds, key=lambda name: int(name[2:])))
        assert [n.name for n in dump.get_input_nodes(node)] == list(read)
        assert all(n.rank == 0 for n in dump.get_input_nodes(node))
        (twin,) = dump.node_index.on_other_ranks(node)
        assert (twin.rank, twin.name) == (1, node.name)
    assert [n.name for n in dump.get_output_nodes(chain[7])] == ["op8"]
    assert dump.get_output_nodes(chain[0]) == chain[1:OPERATORS]
    assert Counted.taken == len(chain)
