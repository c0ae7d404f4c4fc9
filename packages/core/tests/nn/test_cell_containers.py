"""Cells that hold cells: sequences, lists, dicts."""

from __future__ import annotations

import pytest

from mycelia import Tensor, nn


class Twice(nn.Cell):
    def construct(self, x):
        return x * 2


def names(cell):
    return [p.name for p in cell.get_parameters()]


# ---- containers --------------------------------------------------------------------------------------------


def test_sequential_cells_are_a_list_that_renumbers():
    s = nn.SequentialCell(nn.Dense(1, 1), nn.ReLU())
    s.append(nn.Dense(1, 2))
    assert names(s) == ["0.weight", "0.bias", "2.weight", "2.bias"] and len(s) == 3
    del s[1]
    assert names(s) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    s.insert(0, nn.ReLU())
    assert names(s) == ["1.weight", "1.bias", "2.weight", "2.bias"]
    assert isinstance(s[0], nn.ReLU) and isinstance(s[-1], nn.Dense)
    assert [type(c).__name__ for c in s[1:]] == ["Dense", "Dense"]
    assert s(Tensor([[1.0]])).shape == (1, 2)


def test_sequential_cells_may_have_names():
    from collections import OrderedDict

    s = nn.SequentialCell(OrderedDict(first=nn.Dense(1, 1), last=nn.ReLU()))
    assert names(s) == ["first.weight", "first.bias"]


def test_cell_list_numbers_its_members_and_cannot_be_called():
    cells = nn.CellList([nn.Dense(1, 1)])
    cells.append(nn.Dense(1, 1))
    cells.insert(0, nn.Dense(1, 2))
    cells.extend([nn.Dense(1, 1)])
    assert names(cells) == [f"{i}.{n}" for i in range(4) for n in ("weight", "bias")]
    assert [c.out_channels for c in cells] == [2, 1, 1, 1]
    with pytest.raises(NotImplementedError):
        cells(Tensor([1.0]))


@pytest.mark.parametrize(
    "kind, wrong",
    [
        (TypeError, lambda: nn.SequentialCell(3)),
        (TypeError, lambda: nn.CellList([3])),
        (TypeError, lambda: nn.CellList([]).append(3)),
        (TypeError, lambda: nn.CellList([]).extend(3)),
        (IndexError, lambda: nn.CellList([])[0]),
        (TypeError, lambda: nn.CellList([Twice()])[1.0]),
        (IndexError, lambda: nn.CellList([]).insert(5, Twice())),
        (TypeError, lambda: nn.CellDict({"a": 3})),
        (KeyError, lambda: nn.CellDict({"a.b": Twice()})),
    ],
)
def test_containers_refuse_what_they_cannot_hold(kind, wrong):
    with pytest.raises(kind):
        wrong()


def test_cell_dict_is_a_dict_whose_parameters_are_named_by_key():
    cells = nn.CellDict({"a": nn.Dense(1, 1)})
    cells["b"] = nn.ReLU()
    cells.update([("c", nn.Dense(1, 1))])
    assert list(cells.keys()) == ["a", "b", "c"] and "b" in cells and len(cells) == 3
    assert names(cells) == ["a.weight", "a.bias", "c.weight", "c.bias"]
    assert isinstance(cells.pop("b"), nn.ReLU)
    cells.clear()
    assert len(cells) == 0
