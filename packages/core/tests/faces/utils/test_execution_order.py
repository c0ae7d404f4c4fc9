"""Recorded orders of collectives, compared among processes."""

import logging

import pytest

import mycelia as ms
from mycelia.utils import comm_exec_order_check, execution_order
from mycelia.utils.execution_order import ExecuteOrder, RankFolderParser, detect_cycle_in_graph

COLUMNS = (
    "index,group,comm_rank,primitive,src_rank,dest_rank,root_rank,"
    "input_shape,input_type,output_shape,output_type,input_size,output_size"
)
REDUCE = 'g,0 1,AllReduce,,,,"(4,)",Float32,"(4,)",Float32,16,16'
SPREAD = 'g,0 1,Broadcast,,,1,"(2,)",Float32,"(2,)",Float32,8,8'
SEND = 'g,0,Send,0,1,,"(3,)",Float32,,,12,'
RECEIVE = 'g,1,Receive,0,1,,,,"(3,)",Float32,,12'


def record(folder, rank, *rows):
    place = folder / f"rank_{rank}" / "execute_order"
    place.mkdir(parents=True)
    lines = [COLUMNS, *(f"{i},{row}" for i, row in enumerate(rows))]
    (place / "comm_execute_order.csv").write_text("\n".join(lines) + "\n")


def check(folder, caplog, **options):
    caplog.clear()
    with caplog.at_level(logging.ERROR, logger="mycelia.utils"):
        ms.utils.runtime_execution_order_check(str(folder), **options)
    return [r.getMessage() for r in caplog.records]


@pytest.fixture(autouse=True)
def heard(monkeypatch):
    monkeypatch.setattr(logging.getLogger("mycelia"), "propagate", True)


def test_compatible_orders_are_silent(tmp_path, caplog):
    record(tmp_path, 0, REDUCE, SEND, SPREAD, REDUCE)
    record(tmp_path, 1, REDUCE, RECEIVE, SPREAD, REDUCE)
    assert check(tmp_path, caplog) == []


def test_a_circle_of_waiting_is_told(tmp_path, caplog):
    record(tmp_path, 0, REDUCE, SPREAD)
    record(tmp_path, 1, SPREAD, REDUCE)
    (told,) = check(tmp_path, caplog)
    assert "0 AllReduce_g_(0,1)_1th -> Broadcast_g_commRank:(0,1)_rootRank:(1)_1th" in told


def test_a_missing_partner_is_told(tmp_path, caplog):
    record(tmp_path, 0, REDUCE, SEND)
    record(tmp_path, 1, REDUCE)
    (told,) = check(tmp_path, caplog)
    assert "process 1 lacks Send_Receive_g_(0)->(1)_(3,)_1th" in told


def test_a_missing_process_is_told_unless_it_may_miss(tmp_path, caplog):
    record(tmp_path, 0, REDUCE)
    (told,) = check(tmp_path, caplog)
    assert "no record of process 1" in told
    assert check(tmp_path, caplog, all_rank=False) == []


def test_records_are_read(tmp_path):
    record(tmp_path, 3, SEND)
    other = tmp_path / "rank_4" / "execute_order"
    other.mkdir(parents=True)
    (other / "comm_execute_order.csv").write_text("index,group\n1,g\n")
    found = RankFolderParser(str(tmp_path)).parse()
    assert found == {"3": [ExecuteOrder("0", "g", "0", "Send", "0", "1", "", "(3,)", "")]}
    assert RankFolderParser([str(tmp_path / "rank_3")]).parse() == found


@pytest.mark.parametrize("folder", ["relative/path", "/there/is/none", "{empty}"])
def test_folders_without_records_are_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="RankFolderParser"):
        RankFolderParser(folder.format(empty=tmp_path))


def test_repeated_collectives_are_numbered():
    order = ExecuteOrder("0", "g", "0 1", "AllGather")
    found = execution_order.modify_execute_orders({"0": [order, order]})
    assert found == {"0": ["AllGather_g_(0,1)_1th", "AllGather_g_(0,1)_2th"]}


@pytest.mark.parametrize(
    "orders, circle, steps",
    [
        ({"0": ["a", "b", "c"], "1": ["a", "c"]}, None, None),
        ({}, None, None),
        ({"0": ["a", "a"]}, ["a", "a"], ["0 a -> a"]),
        ({"0": ["x", "a", "b"], "1": ["b", "a"]}, ["a", "b", "a"], ["0 a -> b", "1 b -> a"]),
        (
            {"0": ["a", "b"], "1": ["b", "c"], "2": ["c", "a"]},
            ["a", "b", "c", "a"],
            ["0 a -> b", "1 b -> c", "2 c -> a"],
        ),
    ],
)
def test_circles(orders, circle, steps):
    assert detect_cycle_in_graph(orders) == (circle, steps)


def test_recording_starts_and_ends(caplog):
    with caplog.at_level(logging.ERROR, logger="mycelia.utils"):
        comm_exec_order_check("end")
        comm_exec_order_check("start")
        comm_exec_order_check("start")
    assert ["has not started" in caplog.messages[0], "has started" in caplog.messages[1]] == [True, True]
    with pytest.raises(RuntimeError, match="Ascend"):
        comm_exec_order_check("end")
    with pytest.raises(TypeError):
        comm_exec_order_check(1)
    with pytest.raises(ValueError):
        comm_exec_order_check("pause")
