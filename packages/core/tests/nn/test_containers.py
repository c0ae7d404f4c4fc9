"""What CellList and CellDict take."""

import pytest

import mycelia as ms
from mycelia import Tensor, nn


def cells():
    return nn.CellDict({"a": nn.ReLU()})


@pytest.mark.parametrize(
    ("key", "cell", "error"),
    [
        (1, nn.ReLU, TypeError),
        ("", nn.ReLU, KeyError),
        ("a.b", nn.ReLU, KeyError),
        ("keys", nn.ReLU, KeyError),  # would hide the method
        ("b", lambda: None, TypeError),
        ("b", cells, TypeError),
        ("b", lambda: nn.CellList([nn.ReLU()]), TypeError),
        ("b", lambda: nn.SequentialCell(nn.ReLU()), TypeError),
    ],
)
def test_a_member_of_a_dict_is_a_cell_with_a_name(key, cell, error):
    holder = cells()
    with pytest.raises(error):
        holder[key] = cell()
    assert list(holder.keys()) == ["a"]


@pytest.mark.parametrize(
    ("pairs", "error"), [(3, TypeError), ([3], TypeError), ([["b"]], ValueError), ([["b", 1, 2]], ValueError)]
)
def test_a_dict_is_updated_from_pairs(pairs, error):
    with pytest.raises(error):
        cells().update(pairs)
    holder = cells()
    holder.update([("a", nn.Tanh()), ["b", nn.ReLU()]])
    assert [type(c) for c in holder.values()] == [nn.Tanh, nn.ReLU]


def test_a_list_holds_lists_but_no_dicts():
    assert len(nn.CellList([nn.CellList([nn.ReLU()])])) == 1
    with pytest.raises(TypeError):
        nn.CellList([cells()])


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (3, TypeError),
        ({"weight": 1.0}, TypeError),
        ({1: Tensor([1.0, 2.0])}, TypeError),
        ({"weight": Tensor([1.0])}, ValueError),
        ({"weight": Tensor([1.0, 2.0], ms.float64)}, ValueError),
    ],
)
def test_values_of_a_loaded_graph_fit(given, error, tmp_path):
    class Scale(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = ms.Parameter(Tensor([3.0, 5.0]), name="weight")

        def construct(self, x):
            return x * self.weight

    path = str(tmp_path / "scale.mindir")
    ms.export(Scale(), Tensor([1.0, 1.0]), file_name=path, file_format="MINDIR")
    with pytest.raises(error):
        nn.GraphCell(ms.load(path), params_init=given)
    replaced = nn.GraphCell(ms.load(path), params_init={"weight": Tensor([1.0, 2.0])})
    assert replaced(Tensor([7.0, 7.0])).asnumpy().tolist() == [7.0, 14.0]
