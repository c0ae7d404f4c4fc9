"""The state dict of a Cell, its hooks, conversions and marks."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(2, 2)
        self.scale = Parameter(Tensor([1.0, 2.0]), name="scale")
        self.register_buffer("steps", Tensor([3, 4]))
        self.register_buffer("scratch", Tensor([0.0]), persistent=False)

    def construct(self, x):
        return self.dense(x) * self.scale


def test_state_dict_holds_parameters_and_persistent_buffers():
    net = Net()
    state = net.state_dict()
    assert list(state) == ["scale", "steps", "dense.weight", "dense.bias"]
    assert state["scale"] is net.scale
    other = Net()
    result = other.load_state_dict(state)
    assert repr(result) == "<All keys matched successfully>"
    np.testing.assert_array_equal(other.dense.weight.asnumpy(), net.dense.weight.asnumpy())


def test_load_state_dict_names_what_does_not_fit():
    with pytest.raises(RuntimeError, match=r"(?s)Missing key.*\"steps\".*Unexpected key.*\"more\""):
        Net().load_state_dict({"scale": Tensor([1.0, 2.0]), "more": Tensor(1.0)})
    with pytest.raises(RuntimeError, match="size mismatch for scale"):
        Net().load_state_dict({"scale": Tensor([1.0])}, strict=False)
    found = Net().load_state_dict({"scale": Tensor([5.0, 6.0])}, strict=False)
    assert found.missing_keys == ["steps", "dense.weight", "dense.bias"]
    with pytest.raises(TypeError):
        Net().load_state_dict(3)


def test_hooks_and_extra_state_take_part():
    class Counting(nn.Cell):
        def __init__(self):
            super().__init__()
            self.count = 0

        def get_extra_state(self):
            return self.count

        def set_extra_state(self, state):
            self.count = state

    a, b = Counting(), Counting()
    a.count = 7
    a.register_state_dict_post_hook(lambda cell, state, prefix, meta: state.update(more=Tensor(1.0)))
    b.register_load_state_dict_pre_hook(lambda cell, state, *rest: state.pop("more"))
    handle = b.register_load_state_dict_post_hook(lambda cell, keys: 3)
    with pytest.raises(RuntimeError):
        b.load_state_dict(a.state_dict())
    handle.remove()
    b.load_state_dict(a.state_dict())
    assert b.count == 7


def test_to_casts_what_floats():
    net = Net()
    assert net.to(ms.float16) is net
    assert net.scale.dtype is ms.float16 and net.steps.dtype is ms.int64
    assert net.to(device="CPU", dtype=ms.float32).dense.weight.dtype is ms.float32
    with pytest.raises(TypeError):
        net.to(ms.int32)
    with pytest.raises(RuntimeError):
        net.to("GPU")


def test_hooks_with_keywords_in_front_and_in_any_case():
    seen = []

    class Plus(nn.Cell):
        def construct(self, x, y=0):
            if y < 0:
                raise ValueError("negative")
            return x + y

    cell = Plus()
    cell.register_forward_pre_hook(lambda c, args, kwargs: (args, {"y": kwargs["y"] + 1}), with_kwargs=True)
    cell.register_forward_hook(lambda c, args, out: seen.append("second"))
    cell.register_forward_hook(lambda c, args, out: seen.append("first"), prepend=True)
    assert float(cell(Tensor(1.0), y=1)) == 3.0 and seen == ["first", "second"]
    cell.register_forward_hook(lambda c, args, out: seen.append("always"), always_call=True)
    with pytest.raises(ValueError):
        cell(Tensor(1.0), y=-5)
    assert seen[-1] == "always"


def test_a_parameter_hook_changes_graphs_only():
    class Scaled(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(Tensor(2.0), name="weight")

        def construct(self, x):
            return x * self.weight

    net = Scaled()
    net.register_parameter_forward_hook([{"params": [net.weight], "hook": lambda p: p * 10}])
    value, gradient = ms.jit(ms.value_and_grad(net))(Tensor(3.0))
    assert (float(value), float(gradient)) == (60.0, 20.0)
    assert float(net(Tensor(3.0))) == 6.0


def test_marks():
    net = Net()
    assert net.phase == "train" and net.set_train(False).phase == "predict"
    net.add_flags(sink_mode=True)
    assert net.sink_mode and net.get_flags() == {"training": False, "sink_mode": True}
    net.update_cell_prefix()
    assert net.dense.param_prefix == "dense"
    net.generate_scope()
    assert net.dense.get_scope() == "Default/dense-Dense"
    assert float(net.get_buffer("steps").sum()) == 7
    with pytest.raises(AttributeError):
        net.get_buffer("scale")
    with pytest.raises(TypeError, match="in_strategy"):
        net.shard([(1, 1)])
    with pytest.raises(ValueError):
        net.set_boost("more")


def test_an_attribute_becomes_a_buffer():
    from mycelia.nn.cell import Buffer

    cell = nn.Cell()
    cell.mean = Buffer(Tensor([1.0, 2.0]))
    cell.count = Buffer(Tensor([3]), persistent=False)
    assert [name for name, _ in cell.named_buffers()] == ["mean", "count"]
    assert list(cell.state_dict()) == ["mean"] and cell.mean.asnumpy().tolist() == [1.0, 2.0]
