"""`Cell`: names of parameters and cells, attributes, hooks, modes, copies. Names are MindSpore 2.10's."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, ParameterTuple, Tensor, nn


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.d = nn.Dense(2, 3)
        self.scale = Parameter(Tensor(np.ones(3, np.float32)))

    def construct(self, x):
        return self.d(x) * self.scale


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.b1 = Block()
        self.seq = nn.SequentialCell(nn.Dense(3, 4), nn.ReLU(), nn.Dense(4, 2))
        self.lst = nn.CellList([Block(), nn.Dense(1, 1)])
        self.w = Parameter(Tensor(np.zeros(2, np.float32)), name="my_w", requires_grad=False)
        self.bn = nn.BatchNorm1d(2)

    def construct(self, x):
        return self.bn(self.seq(self.b1(x))) + self.w


class Twice(nn.Cell):
    def construct(self, x):
        return x * 2


def names(cell):
    return [p.name for p in cell.get_parameters()]


# ---- parameters --------------------------------------------------------------------------------------------


def test_parameters_are_named_by_their_path_and_keep_names_of_their_own():
    net = Net()
    assert names(net) == [
        "my_w", "b1.scale", "b1.d.weight", "b1.d.bias", "seq.0.weight", "seq.0.bias", "seq.2.weight",
            "seq.2.bias",
        "lst.0.scale", "lst.0.d.weight", "lst.0.d.bias", "lst.1.weight", "lst.1.bias", "bn.moving_mean",
        "bn.moving_variance", "bn.gamma", "bn.beta",
    ]  # fmt: skip
    assert list(net.parameters_dict()) == names(net)
    assert [path for path, _ in net.parameters_and_names()][0] == "w"


def test_trainable_parameters_are_those_that_require_gradients():
    net = Net()
    assert {p.name for p in net.untrainable_params()} == {"my_w", "bn.moving_mean", "bn.moving_variance"}
    assert len(net.trainable_params()) + 3 == len(names(net))
    net.seq[0].weight.requires_grad = False
    assert "seq.0.weight" not in [p.name for p in net.trainable_params()]
    assert [p.name for p in net.get_parameters(expand=False)] == ["my_w"]


def test_cells_are_listed_by_path():
    net = Net()
    paths = [path for path, _ in net.cells_and_names()]
    assert paths[:4] == ["", "b1", "b1.d", "seq"]
    assert list(net.name_cells()) == ["b1", "seq", "lst", "bn"]
    assert len(list(net.cells())) == 4


def test_a_cell_under_two_attributes_is_named_by_the_last_and_listed_once():
    class Shared(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = nn.Dense(2, 2)
            self.b = self.a
            self.c = nn.Dense(2, 2)
            self.c.weight = self.a.weight

    net = Shared()
    assert names(net) == ["b.weight", "b.bias", "c.bias"]
    assert net.c.weight is net.a.weight
    assert len(net.trainable_params()) == 3


def test_a_shared_parameter_gets_the_gradients_of_all_its_uses():
    class Tied(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = nn.Dense(1, 1, weight_init=Tensor([[3.0]]), has_bias=False)
            self.b = nn.Dense(1, 1, has_bias=False)
            self.b.weight = self.a.weight

        def construct(self, x):
            return self.b(self.a(x))

    net = Tied()
    grads = ms.grad(net, None, net.trainable_params())(Tensor([[2.0]]))
    grad = grads[0] if isinstance(grads, tuple) else grads
    assert float(grad.asnumpy().reshape(())) == 12.0  # d(w * w * x) / dw


def test_members_of_a_parameter_tuple_keep_their_names():
    class Tuple(nn.Cell):
        def __init__(self):
            super().__init__()
            self.ps = ParameterTuple(
                [Parameter(Tensor([1.0]), name="q1"), Parameter(Tensor([2.0]), name="q2")]
            )

    assert names(Tuple()) == ["q1", "q2"]
    clone = Tuple().ps.clone(prefix="moment", init="zeros")
    assert [(p.name, p.asnumpy().tolist()) for p in clone] == [("moment.q1", [0.0]), ("moment.q2", [0.0])]


def test_a_reassigned_cell_replaces_the_old_one():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = nn.Dense(2, 2)
            self.a = nn.Dense(2, 3)

    assert [(p.name, p.shape) for p in Net().get_parameters()] == [("a.weight", (3, 2)), ("a.bias", (3,))]


def test_check_names_finds_two_parameters_of_one_name():
    class Same(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = Parameter(Tensor([1.0]), name="x")
            self.b = Parameter(Tensor([1.0]), name="x")

    with pytest.raises(ValueError, match="both named 'x'"):
        Same().check_names()


def test_update_parameters_name_puts_a_prefix_in_front():
    dense = nn.Dense(1, 1)
    dense.update_parameters_name("head.")
    assert names(dense) == ["head.weight", "head.bias"]
    with pytest.raises(ValueError, match="prefix"):
        dense.update_parameters_name("a b")


# ---- attributes --------------------------------------------------------------------------------------------


def test_an_unknown_attribute_names_class_and_attribute():
    with pytest.raises(AttributeError, match=r"The 'Net' object has no attribute 'foo'\."):
        Net().foo  # noqa: B018


@pytest.mark.parametrize("value", [Parameter(Tensor([1.0]), name="w"), Twice()], ids=["parameter", "cell"])
def test_assigning_before_super_init_says_so(value):
    class Bad(nn.Cell):
        def __init__(self):
            self.w = value

    with pytest.raises(AttributeError, match=r"super\(\).__init__"):
        Bad()


def test_a_parameter_attribute_takes_tensors_and_nothing_else():
    net = Block()
    net.scale = Tensor(np.full(3, 2.0, np.float32))
    assert isinstance(net.scale, Parameter) and net.scale.asnumpy().tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="'scale' is a Parameter"):
        net.scale = 3
    net.scale = None
    assert names(net) == ["d.weight", "d.bias"]


def test_a_cell_attribute_takes_cells_and_none():
    net = Block()
    with pytest.raises(TypeError, match="'d' is a Cell"):
        net.d = 3
    net.d = None
    assert list(net.name_cells()) == []
    net.d = Twice()
    assert list(net.name_cells()) == ["d"]


def test_deleted_attributes_are_gone():
    net = Block()
    del net.d
    assert names(net) == ["scale"]
    with pytest.raises(AttributeError):
        net.d  # noqa: B018


def test_inserted_cells_and_parameters_keep_their_names():
    net = nn.Cell()
    net.insert_child_to_cell("x", nn.Dense(1, 1))
    net.insert_param_to_cell("p", Parameter(Tensor([1.0])))
    assert names(net) == ["p", "weight", "bias"]
    assert [path for path, _ in net.parameters_and_names()] == ["p", "x.weight", "x.bias"]


@pytest.mark.parametrize(
    "kind, insert",
    [
        (KeyError, lambda c: c.insert_child_to_cell("a.b", Twice())),
        (KeyError, lambda c: c.insert_child_to_cell("", Twice())),
        (KeyError, lambda c: c.insert_child_to_cell("construct", Twice())),
        (TypeError, lambda c: c.insert_child_to_cell("q", 3)),
        (KeyError, lambda c: c.insert_param_to_cell("a.b", Parameter(Tensor([1.0])))),
        (KeyError, lambda c: c.insert_param_to_cell("construct", Parameter(Tensor([1.0])))),
        (TypeError, lambda c: c.insert_param_to_cell("q", Tensor([1.0]))),
        (KeyError, lambda c: c.register_buffer("a.b", Tensor([1.0]))),
        (TypeError, lambda c: c.register_buffer("b", 1.0)),
    ],
)
def test_insertions_that_cannot_be_are_refused(kind, insert):
    with pytest.raises(kind):
        insert(nn.Cell())


def test_buffers_are_state_but_no_parameters():
    net = Twice()
    net.register_buffer("seen", Tensor([1.0]))
    net.seen = Tensor([2.0])
    assert [(n, b.asnumpy().tolist()) for n, b in net.named_buffers()] == [("seen", [2.0])]
    assert names(net) == []


def test_get_sub_cell_follows_a_path():
    net = Net()
    assert net.get_sub_cell("seq.0") is net.seq[0]
    with pytest.raises(AttributeError, match="seq.9"):
        net.get_sub_cell("seq.9")


def test_apply_visits_children_first():
    seen = []
    Block().apply(lambda c: seen.append(type(c).__name__))
    assert seen == ["Dense", "Block"]


# ---- printing ----------------------------------------------------------------------------------------------


def test_printed_form_nests_cells_as_mindspore_does():
    net = nn.SequentialCell(nn.Dense(3, 4, activation="relu"), nn.ReLU())
    assert repr(net) == (
        "SequentialCell(\n"
        "  (0): Dense(\n"
        "    input_channels=3, output_channels=4, has_bias=True, activation=ReLU()\n"
        "    (activation): ReLU()\n"
        "  )\n"
        "  (1): ReLU()\n"
        ")"
    )
    assert repr(nn.Dropout(p=0.3)) == "Dropout(p=0.3)"
    assert repr(nn.MaxPool2d(2)) == "MaxPool2d(kernel_size=2, stride=1, pad_mode=VALID)"


# ---- calling -----------------------------------------------------------------------------------------------


def test_a_cell_without_construct_says_so():
    with pytest.raises(AttributeError, match="construct"):
        nn.Cell()(Tensor([1.0]))


def test_set_train_reaches_all_cells_and_returns_the_cell():
    net = Net()
    assert net.set_train() is net
    assert all(c.training for _, c in net.cells_and_names())
    net.set_train(False)
    assert not any(c.training for _, c in net.cells_and_names())


def test_a_network_in_training_moves_its_statistics_and_in_inference_does_not():
    net = nn.BatchNorm1d(2)
    x = Tensor(np.array([[1.0, 2.0], [3.0, 6.0]], np.float32))
    net(x)
    assert net.moving_mean.asnumpy().tolist() == [0, 0]
    net.set_train()(x)
    np.testing.assert_allclose(net.moving_mean.asnumpy(), [0.2, 0.4], rtol=1e-6)


def test_to_float_computes_in_the_wanted_type():
    seen = []

    class Look(nn.Cell):
        def construct(self, x):
            seen.append(x.dtype)
            return x

    Look().to_float(ms.float16)(Tensor([1.0]))
    assert seen == [ms.float16]
    with pytest.raises(ValueError, match="dst_type"):
        Look().to_float(ms.int32)


def test_own_bprop_replaces_the_gradient():
    class Own(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return dout * 7, dout * out

    assert [float(g.asnumpy()) for g in ms.grad(Own(), (0, 1))(Tensor(2.0), Tensor(3.0))] == [7, 6]


def test_flags_and_inputs_are_kept():
    net = Block().add_flags(a=1).add_flags_recursive(b=2)
    assert net.get_flags() == {"a": 1, "b": 2} and net.d.get_flags() == {"b": 2}
    shape = Tensor(shape=[None, 2], dtype=ms.float32)
    net.set_inputs(shape)
    assert net.get_inputs() == (shape,)
    net.recompute()


# ---- hooks -------------------------------------------------------------------------------------------------


def test_hooks_run_around_forward_and_backward_with_tuples():
    log = []
    h = Twice()
    h.register_forward_pre_hook(lambda c, i: log.append(("pre", len(i))))
    h.register_forward_hook(lambda c, i, o: log.append(("forward", type(i).__name__, type(o).__name__)))
    h.register_backward_pre_hook(lambda c, go: log.append(("backward pre", [float(v.asnumpy()) for v in go])))
    h.register_backward_hook(
        lambda c, gi, go: log.append(
            ("backward", [float(v.asnumpy()) for v in gi], [float(v.asnumpy()) for v in go])
        )
    )
    assert float(ms.grad(lambda x: h(x) * 3)(Tensor(1.0)).asnumpy()) == 6.0
    assert log == [
        ("pre", 1),
        ("forward", "tuple", "Tensor"),
        ("backward pre", [3.0]),
        ("backward", [6.0], [3.0]),
    ]


def test_what_hooks_return_replaces_the_value():
    h = Twice()
    h.register_forward_pre_hook(lambda c, i: (i[0] + 1,))
    h.register_forward_hook(lambda c, i, o: o + 100)
    assert float(h(Tensor(1.0)).asnumpy()) == 104.0
    for register in ("register_backward_hook", "register_backward_pre_hook"):
        h = Twice()
        getattr(h, register)(lambda c, g, *rest: (g[0] * 10,))
        assert float(ms.grad(lambda x, h=h: h(x) * 3)(Tensor(1.0)).asnumpy()) == 60.0


def test_a_removed_hook_is_not_called():
    log = []
    h = Twice()
    handle = h.register_forward_hook(lambda c, i, o: log.append(1))
    h(Tensor(1.0))
    handle.remove()
    h(Tensor(1.0))
    assert log == [1]
    with pytest.raises(TypeError, match="hook_fn"):
        h.register_forward_hook(3)
