"""save_checkpoint, load_checkpoint, load_param_into_net on Tensors, Parameters and nets."""

import errno
import io
import os
import pathlib
import stat

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn
from mycelia.io import checkpoint, files
from mycelia.io.checkpoint import load_checkpoint, save_checkpoint
from mycelia.io.into_net import load_param_into_net

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures/formats/ckpt"


class Net:
    """The part of a Cell that checkpoints use."""

    def __init__(self, **arrays):
        self.parameters = {n: Parameter(Tensor(a), name=n) for n, a in arrays.items()}

    def parameters_and_names(self):
        return list(self.parameters.items())

    def __getitem__(self, name):
        return self.parameters[name].asnumpy()


def net():
    return Net(weight=np.arange(6, dtype=np.float32).reshape(2, 3), bias=np.array([1, 2], np.float32))


def parameters(**arrays):
    return {n: Parameter(Tensor(a), name=n) for n, a in arrays.items()}


W, B = np.full((2, 3), 7, np.float32), np.full(2, 8, np.float32)


def test_a_net_written_with_the_values_of_a_mindspore_file_gives_its_bytes(tmp_path):
    arrays = np.load(FIXTURES / "lenet_params.npz")
    save_checkpoint(Net(**{n: arrays[n] for n in arrays.files}), str(tmp_path / "lenet"))
    assert (tmp_path / "lenet.ckpt").read_bytes() == (FIXTURES / "lenet.ckpt").read_bytes()


def test_loaded_values_are_named_parameters_and_texts_are_str():
    loaded = load_checkpoint(str(FIXTURES / "lenet_append.ckpt"))
    assert isinstance(loaded["fc3.weight"], Parameter) and loaded["fc3.weight"].name == "fc3.weight"
    assert loaded["note"] == "café" and loaded["step_num"].asnumpy() == 3750
    assert loaded["resumed"].dtype == ms.bool_ and loaded["lr"].dtype == ms.float32


def test_lists_dicts_and_appended_values_are_saved(tmp_path):
    path = str(tmp_path / "a.ckpt")
    extra = {"epoch": 3, "lr": 0.5, "done": True, "note": "ü", "t": Tensor(np.array([1], np.int8))}
    save_checkpoint([{"name": "a", "data": Tensor(W)}, *parameters(b=B).values()], path, append_dict=extra)
    loaded = load_checkpoint(path)
    assert list(loaded) == ["a", "b", *extra]
    assert loaded["epoch"].dtype == ms.int64 and loaded["t"].dtype == ms.int8 and loaded["note"] == "ü"
    save_checkpoint({"x": Tensor(B)}, path)
    assert list(load_checkpoint(path)) == ["x"]


def test_appended_values_are_the_bytes_that_mindspore_writes(tmp_path):
    """Recorded from MindSpore 2.10: the record of each value behind a float32 'w' [1]."""
    path = str(tmp_path / "a.ckpt")
    expected = {
        "": "0a120a016b120d080012037374721a0400000000",  # one character: MindSpore loads no text without any
        "ü": "0a120a016b120d080012037374721a04fc000000",
        2**63 - 1: "0a160a016b12111205496e7436341a08ffffffffffffff7f",
        2**63: "0a170a016b1212120655496e7436341a080000000000000080",
        -(2**63): "0a160a016b12111205496e7436341a080000000000000080",
        0.1: "0a140a016b120f1207466c6f617433321a04cdcccc3d",
        1e300: "0a140a016b120f1207466c6f617433321a040000807f",
        np.float64(1.5): "0a180a016b12131207466c6f617436341a08000000000000f83f",
        True: "0a0e0a016b12091204426f6f6c1a0101",
    }
    for value, record in expected.items():
        save_checkpoint([{"name": "w", "data": Tensor([1.0])}], path, append_dict={"k": value})
        assert pathlib.Path(path).read_bytes()[24:].hex() == record, value
        loaded = load_checkpoint(path)["k"]
        with np.errstate(over="ignore"):
            assert loaded == value if isinstance(value, str) else loaded.asnumpy() == np.float32(value), value
    for value in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="append_dict: 'k' is .* which 64 bits cannot hold"):
            save_checkpoint({}, path, append_dict={"k": value})


def test_errors_of_choice_func_come_as_they_are(tmp_path):
    path = str(tmp_path / "a.ckpt")
    save_checkpoint({"x": Tensor(B)}, path)

    def choose(name):
        raise ValueError(f"I do not know {name}")

    with pytest.raises(ValueError, match="^I do not know x$"):
        load_checkpoint(path, choice_func=choose)


def test_bfloat16_survives_exactly(tmp_path):
    path = str(tmp_path / "b.ckpt")
    value = Tensor(np.array([1.5, -2.0, 3.140625, 1e30], np.float32), ms.bfloat16)
    save_checkpoint({"b": value}, path)
    loaded = load_checkpoint(path)["b"]
    assert loaded.dtype == ms.bfloat16
    np.testing.assert_array_equal(
        ms.ops.cast(loaded, ms.float32).asnumpy(), ms.ops.cast(value, ms.float32).asnumpy()
    )


def test_choice_and_prefixes_select_names(tmp_path):
    path = str(tmp_path / "n.ckpt")
    save_checkpoint(net(), path)
    assert list(load_checkpoint(path, choice_func=lambda n: n == "bias")) == ["bias"]
    assert list(load_checkpoint(path, filter_prefix="we")) == ["bias"]
    assert list(load_checkpoint(path, specify_prefix=["we"])) == ["weight"]
    with pytest.raises(ValueError, match="empty after filter"):
        load_checkpoint(path, specify_prefix="zz")
    save_checkpoint(net(), path, choice_func=lambda n: n == "weight")
    assert list(load_checkpoint(path)) == ["weight"]


def test_safetensors(tmp_path):
    path = str(tmp_path / "n.safetensors")
    save_checkpoint(net(), path, format="safetensors", crc_check=True, append_dict={"epoch": 2})
    loaded = load_checkpoint(path, format="safetensors", crc_check=True)
    assert list(loaded) == ["bias", "epoch", "weight"]
    np.testing.assert_array_equal(loaded["weight"].asnumpy(), net()["weight"])
    with pytest.raises(TypeError, match="text: note"):
        save_checkpoint(net(), path, format="safetensors", append_dict={"note": "x"})


def test_async_saves_keep_the_values_of_the_call_and_their_order(tmp_path):
    path, target = str(tmp_path / "n.ckpt"), net()
    for i in range(5):
        target.parameters["bias"].set_data(Tensor(np.full(2, i, np.float32)))
        save_checkpoint(target, path, async_save=True)
    target.parameters["bias"].set_data(Tensor(np.full(2, 99, np.float32)))
    checkpoint._writer().wait()
    np.testing.assert_array_equal(load_checkpoint(path)["bias"].asnumpy(), [4, 4])
    save_checkpoint(target, path)
    np.testing.assert_array_equal(load_checkpoint(path)["bias"].asnumpy(), [99, 99])


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "n.ckpt"
    save_checkpoint(net(), str(path))
    old = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint({"other": Tensor(B)}, str(path))
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["n.ckpt"]


def test_files_are_left_read_only_and_can_be_replaced(tmp_path):
    path = tmp_path / "n.ckpt"
    for _ in range(2):
        save_checkpoint(net(), str(path))
        assert stat.S_IMODE(path.stat().st_mode) == 0o400


@pytest.mark.parametrize(
    "arguments, error",
    [
        (dict(save_obj=3), TypeError),
        (dict(ckpt_file_name=3), TypeError),
        (dict(format="abc"), ValueError),
        (dict(async_save="foo"), ValueError),
        (dict(append_dict={"x": [1]}), TypeError),
        (dict(append_dict={3: 1}), TypeError),
        (dict(save_obj=[{"name": "a", "data": np.ones(2)}]), TypeError),
        (dict(enc_key=b"0123456789abcdef", crc_check=True), ValueError),
        (dict(enc_key="0123456789abcdef"), TypeError),
    ],
)
def test_wrong_arguments_of_save(tmp_path, arguments, error):
    with pytest.raises(error):
        save_checkpoint(**(dict(save_obj=net(), ckpt_file_name=str(tmp_path / "x.ckpt")) | arguments))
    assert os.listdir(tmp_path) == []


def test_wrong_arguments_of_load(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        load_checkpoint(str(tmp_path / "none.ckpt"))
    with pytest.raises(ValueError, match="format"):
        load_checkpoint(str(tmp_path / "none.txt"))
    with pytest.raises(TypeError):
        load_checkpoint(3)
    with pytest.raises(TypeError, match="prefix"):
        load_checkpoint(str(FIXTURES / "lenet.ckpt"), filter_prefix=3)


def test_a_damaged_file_names_itself_and_the_reason(tmp_path):
    path = tmp_path / "cut.ckpt"
    path.write_bytes((FIXTURES / "lenet.ckpt").read_bytes()[:1000])
    with pytest.raises(ValueError, match="cut.ckpt.*wants"):
        load_checkpoint(str(path))


# ---------------------------------------------------------------------------------------------------- into a
# net
def test_values_reach_the_net_and_names_without_partner_are_returned():
    target = net()
    assert load_param_into_net(target, parameters(weight=W, extra=B)) == (["bias"], ["extra"])
    np.testing.assert_array_equal(target["weight"], W)


def test_every_misfit_is_listed_and_nothing_is_loaded():
    target = net()
    wrong = parameters(weight=np.ones((3, 3), np.float32), bias=np.ones(2, np.int32), extra=B)
    with pytest.raises(RuntimeError) as e:
        load_param_into_net(target, wrong)
    for text in ("weight", "(2, 3)", "(3, 3)", "bias", "int32", "float32", "extra"):
        assert text in str(e.value)
    target2 = net()
    with pytest.raises(RuntimeError, match="bias"):
        load_param_into_net(target2, parameters(weight=W, bias=np.ones(7, np.float32)))
    np.testing.assert_array_equal(target2["weight"], net()["weight"])


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_float_widths_are_converted_unless_strict(dtype):
    target = net()
    load_param_into_net(target, parameters(weight=W.astype(dtype)))
    assert target["weight"].dtype == np.float32
    with pytest.raises(RuntimeError, match=dtype):
        load_param_into_net(target, parameters(weight=W.astype(dtype)), strict_load=True)


def test_kinds_of_numbers_are_not_converted():
    target = Net(i=np.array([1, 2], np.int32), b=np.array([True]))
    load_param_into_net(target, parameters(i=np.array([3, 4], np.int8)))
    np.testing.assert_array_equal(target["i"], [3, 4])
    for wrong in (dict(i=np.array([1, 2], np.uint8)), dict(b=np.array([1], np.int8))):
        with pytest.raises(RuntimeError):
            load_param_into_net(target, parameters(**wrong))


def test_trailing_ones_are_dropped():
    target = Net(w=np.zeros((2, 3), np.float32), s=np.float32(0))
    load_param_into_net(target, parameters(w=W[..., None], s=np.ones(1, np.float32)))
    np.testing.assert_array_equal(target["w"], W)
    assert target["s"].shape == () and target["s"] == 1
    with pytest.raises(RuntimeError):
        load_param_into_net(target, parameters(w=W[..., None]), strict_load=True)


def test_a_common_prefix_is_taken_off():
    target = net()
    wrapped = parameters(**{"net.weight": W, "net.bias": B, "q": B})
    assert load_param_into_net(target, wrapped) == ([], ["net.weight", "net.bias", "q"])
    np.testing.assert_array_equal(target["bias"], B)
    assert load_param_into_net(net(), wrapped, strict_load=True)[0] == ["weight", "bias"]


def test_texts_in_a_checkpoint_do_not_disturb():
    assert load_param_into_net(net(), parameters(weight=W, bias=B) | {"note": "hi"}) == ([], ["note"])


def test_load_checkpoint_into_a_net(tmp_path):
    path, target = str(tmp_path / "n.ckpt"), net()
    save_checkpoint(parameters(weight=W, bias=B), path)
    load_checkpoint(path, net=target)
    np.testing.assert_array_equal(target["weight"], W)


@pytest.mark.parametrize("net_, dict_", [(1, {}), (net, [1]), (net, {"a": 1}), (net, {1: 2})])
def test_wrong_arguments_of_load_param_into_net(net_, dict_):
    with pytest.raises(TypeError):
        load_param_into_net(net_() if callable(net_) else net_, dict_)


def test_texts_arrays_and_states_of_generators(tmp_path):
    path = str(tmp_path / "a.ckpt")
    generator = ms.Generator().manual_seed(3)
    ms.save_checkpoint({"a": np.ones(2, np.float32), "t": "text"}, path, append_dict={"g": generator})
    found = ms.load_checkpoint(path)
    assert (found["a"].asnumpy().tolist(), found["t"]) == ([1, 1], "text")
    assert found["g"].asnumpy().tolist() == [3, *[0] * 15]


def test_safetensors_from_memory(tmp_path):
    path = str(tmp_path / "a.safetensors")
    ms.save_checkpoint({"a": ms.Tensor([1.5])}, path, format="safetensors")
    with open(path, "rb") as file:
        content = io.BytesIO(file.read())
    assert ms.load_checkpoint(content, format="safetensors")["a"].asnumpy().tolist() == [1.5]


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError):
        ms.save_checkpoint({"a": ms.Tensor([1.5])}, str(tmp_path))


def test_prefixes_go_before_the_choice(tmp_path):
    path = str(tmp_path / "a.ckpt")
    ms.save_checkpoint({"a.x": ms.Tensor(1), "b.x": ms.Tensor(2)}, path)
    assert list(ms.load_checkpoint(path, specify_prefix="b", choice_func=lambda name: name == "a.x")) == [
        "b.x"
    ]


_ADAM = ["learning_rate", "beta1_power [1]", "beta2_power [1]", "moment1.w", "moment2.w"]
_STATES = [  # optimizer, what its checkpoint holds besides the step and the weights, as MindSpore writes it
    (lambda p: nn.Momentum(p, 0.1, 0.9), ["learning_rate", "momentum", "moments.w"]),
    (lambda p: nn.SGD(p, nn.ExponentialDecayLR(0.1, 0.9, 4)), ["momentum", "accum.w", "stat.w"]),
    (lambda p: nn.LazyAdam(p, 0.1), _ADAM),
    (lambda p: nn.AdamOffload(p, 0.1), _ADAM),
    (lambda p: nn.Lamb(p, 0.1), ["learning_rate", "lamb_m.w", "lamb_v.w"]),
    (lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9)),
     ["fake_lr", "fake_param", "learning_rate", "momentum", "moments.w"]),
]  # fmt: skip


@pytest.mark.parametrize("make, names", _STATES)
def test_states_of_optimizers_have_their_names(tmp_path, make, names):
    path = str(tmp_path / "a.ckpt")
    ms.save_checkpoint(make([ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")]), path)
    found = ms.load_checkpoint(path)
    texts = [f"{n} [1]" if v.shape == (1,) else n for n, v in found.items() if n not in ("global_step", "w")]
    assert sorted(texts) == sorted(names)
