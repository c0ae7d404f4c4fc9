"""Models: batches made of instances and taken apart again, and what does not fit a model."""

from __future__ import annotations

import numpy as np
import pytest

from mycelia_serving.engine.models import batch_sizes
from mycelia_serving.errors import Code, ServingError

RNG = np.random.default_rng(5)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def one_model(file: str, inputs: str, outputs: str, count: int, options: str = "") -> str:
    return f"""
model = register.declare_model("{file}.mindir", "MindIR"{options})

@register.register_method({outputs!r}.split())
def predict({inputs}):
    return register.add_stage(model, {inputs}, outputs_count={count})
"""


@pytest.fixture
def add_sub(serve):
    return serve(one_model("add_sub", "x, y", "sum difference", 2), "add_sub")


def test_three_instances_at_batch_two_come_back_in_order(add_sub, infer):
    instances = [{"x": floats(3), "y": floats(3)} for _ in range(3)]
    results = infer(add_sub, "predict", *instances)
    assert len(results) == 3
    for given, result in zip(instances, results):
        np.testing.assert_array_equal(result["sum"], given["x"] + given["y"])
        np.testing.assert_array_equal(result["difference"], given["x"] - given["y"])
        assert result["sum"].shape == (3,) and not result["sum"].flags.writeable


def test_the_engine_tells_the_signature_without_the_batch(add_sub):
    (info,) = add_sub.infos
    assert [(i.name, i.dtype, i.shape, i.batched) for i in info.inputs] == [
        ("x", "float32", (3,), True),
        ("y", "float32", (3,), True),
    ]
    assert [(o.name, o.dtype, o.shape) for o in info.outputs] == [
        ("sum", "float32", (3,)),
        ("difference", "float32", (3,)),
    ]
    assert info.batch_size == add_sub.batch_size == 2
    assert add_sub.model_files[0].endswith("demo/1/add_sub.mindir")


def test_without_batch_dim_an_instance_is_a_run(serve, infer):
    engine = serve(one_model("add", "x, y", "z", 1, ", with_batch_dim=False"), "add")
    x, y = floats(2, 2), floats(2, 2)
    results = infer(engine, "predict", {"x": x, "y": y}, {"x": y, "y": y})
    np.testing.assert_array_equal(results[0]["z"], x + y)
    np.testing.assert_array_equal(results[1]["z"], y + y)
    assert engine.infos[0].batch_size == 0


def test_scalars_of_a_batch_are_arrays_without_dimensions(serve, infer):
    engine = serve(one_model("sums", "x", "s", 1), "sums")
    x = np.arange(4, dtype=np.float32)
    (result,) = infer(engine, "predict", {"x": x})
    assert isinstance(result["s"], np.ndarray) and result["s"].shape == () and result["s"] == 6


def test_inputs_without_batch_are_given_whole_and_only_equal_ones_share_a_run(serve, infer):
    config = one_model("scaled", "x, scale", "y batch", 2, ", without_batch_dim_inputs=1")
    engine = serve(config, "scaled")
    scales = [np.full(3, s, np.float32) for s in (1, 2, 1, 3, 2, 1, 1, 1)]
    instances = [{"x": floats(3), "scale": scale} for scale in scales]
    for given, result in zip(instances, infer(engine, "predict", *instances)):
        np.testing.assert_array_equal(result["y"], given["x"] * given["scale"])
    assert engine.infos[0].inputs[1].batched is False


def test_an_open_batch_takes_any_number(serve, infer):
    engine = serve(one_model("double_any", "x", "y", 1), "double_any", max_batch_size=5)
    assert engine.batch_size == 5
    instances = [{"x": floats(3)} for _ in range(13)]
    for given, result in zip(instances, infer(engine, "predict", *instances)):
        np.testing.assert_array_equal(result["y"], given["x"] * 2)


def test_open_sizes_group_instances_by_shape(serve, infer):
    engine = serve(one_model("double_shape", "x", "y", 1), "double_shape", max_batch_size=3)
    assert engine.infos[0].inputs[0].shape == (-1,)
    instances = [{"x": floats(n)} for n in (2, 5, 2, 0, 5, 2, 2)]
    for given, result in zip(instances, infer(engine, "predict", *instances)):
        np.testing.assert_array_equal(result["y"], given["x"] * 2)


def test_batches_are_filled_up_by_a_third_at_most():
    assert batch_sizes(1) == (1,)
    assert batch_sizes(6) == (1, 2, 3, 4, 6)
    assert batch_sizes(32) == (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
    assert batch_sizes(20) == (1, 2, 3, 4, 6, 8, 12, 16, 20)


BAD = {
    "dtype": (
        np.zeros(3, np.int32),
        r"Input 1 'y' of the model 'add_sub.mindir' should be float32, but is int32",
    ),
    "size": (floats(4), r"Input 1 .* shape \[3\], 12 bytes, but has \[4\], 16 bytes"),
    "shape": (floats(3, 1), r"shape \[3\], 12 bytes, but has \[3, 1\], 12 bytes"),
    "text": ("abc", "should be float32, but is str"),
    "many dimensions": (floats(*[1] * 40), "and 24 more sizes"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_the_error_of_its_instance_only(add_sub, infer, case):
    value, message = BAD[case]
    good = {"x": floats(3), "y": floats(3)}
    first, bad, last = infer(add_sub, "predict", good, {"x": floats(3), "y": value}, good)
    np.testing.assert_array_equal(first["sum"], good["x"] + good["y"])
    np.testing.assert_array_equal(last["sum"], first["sum"])
    assert isinstance(bad, ServingError) and bad.code == Code.INVALID_INPUTS
    with pytest.raises(ServingError, match=message):
        raise bad


def test_a_missing_input_is_named_and_others_are_ignored(add_sub, infer):
    good = {"x": floats(3), "y": floats(3), "z": "more"}
    bad, fine = infer(add_sub, "predict", {"x": floats(3)}, good)
    assert bad.code == Code.INVALID_INPUTS
    assert "'y'" in bad.message and "'demo'" in bad.message and "'predict'" in bad.message
    np.testing.assert_array_equal(fine["sum"], good["x"] + good["y"])


def test_allow_reshape_takes_values_of_equal_size(serve, infer):
    engine = serve(one_model("add_sub", "x, y", "a b", 2, ", allow_reshape=True"), "add_sub")
    x = floats(3, 1)
    fine, bad = infer(engine, "predict", {"x": x, "y": floats(1, 3)}, {"x": x, "y": floats(4)})
    assert fine["a"].shape == (3,) and isinstance(bad, ServingError)


def test_unknown_methods_and_empty_requests_are_answered(add_sub, infer):
    (error,) = infer(add_sub, "absent", {})
    assert error.code == Code.NOT_FOUND and "'absent'" in error.message
    assert infer(add_sub, "predict") == []


WHOLE = ", with_batch_dim=False"


def test_a_model_that_changes_itself_starts_as_its_file_has_it(serve, infer):
    engine = serve(one_model("counter", "x", "total a b", 3, WHOLE), "counter")
    for total in (3, 5):
        (result,) = infer(engine, "predict", {"x": np.ones(2, np.float32)})
        np.testing.assert_array_equal(result["total"], [total, total])
        np.testing.assert_array_equal(result["a"], result["b"])


def test_clients_send_float32_for_bfloat16(serve, infer):
    engine = serve(one_model("bfloat", "x, y", "z", 1, WHOLE), "bfloat")
    assert [i.dtype for i in engine.infos[0].inputs] == ["float32", "float32"]
    x = np.array([1.5, -2], np.float32)
    np.testing.assert_array_equal(infer(engine, "predict", {"x": x, "y": x})[0]["z"], x * x)


def test_thread_num_of_a_context_is_that_of_the_process(serve):
    import mycelia as ms

    before = ms.get_context("runtime_num_threads")
    try:
        serve(one_model("add", "x, y", "z", 1, WHOLE + ", context=register.Context(thread_num=3)"), "add")
        assert ms.get_context("runtime_num_threads") == 3
    finally:
        ms.set_context(runtime_num_threads=before)


def test_a_model_may_loop_on_its_data(serve, infer):
    engine = serve(one_model("while", "x, n", "y", 1, WHOLE), "while")
    x = np.ones(2, np.float32)
    results = infer(engine, "predict", *({"x": x, "n": np.array(n, np.int32)} for n in (0, 3)))
    assert [float(r["y"][0]) for r in results] == [1, 8]


# ---- at the start ------------------------------------------------------------------------------------------

START = {
    "model inputs": (one_model("add_sub", "x", "a b", 2), ["add_sub"], "gives the model .* 1 inputs.* has 2"),
    "model outputs": (one_model("add_sub", "x, y", "a", 1), ["add_sub"], "1 outputs, but the model has 2"),
    "file": (one_model("add_sub", "x, y", "a b", 2), [], "demo/1/add_sub.mindir does not exist"),
    "index": (
        one_model("add_sub", "x, y", "a b", 2, ", without_batch_dim_inputs=2"),
        ["add_sub"],
        "'without_batch_dim_inputs' of the model 'add_sub.mindir' has index 2, but the model has 2 inputs",
    ),
    "batch sizes": (one_model("scaled", "x, scale", "y b", 2), ["scaled"], "different batch sizes: 3, 4"),
    "config file": (
        one_model("add", "x, y", "z", 1, ", config_file='mixed.ini'"),
        ["add"],
        "mixed.ini of 'add.mindir' does not exist",
    ),
    "format": (
        'register.declare_model("add.om", "OM")\n@register.register_method("y")\ndef f(x):\n    return x\n',
        [],
        "demo/1/add.om",
    ),
}


@pytest.mark.parametrize("case", START)
def test_a_model_that_cannot_be_served_fails_the_start(serve, case):
    config, files, message = START[case]
    with pytest.raises(RuntimeError, match=message):
        serve(config, *files)


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x01"])
def test_a_damaged_file_is_named(serve, tmp_path, content):
    (tmp_path / "demo" / "1").mkdir(parents=True)
    (tmp_path / "demo" / "1" / "add.mindir").write_bytes(content)
    with pytest.raises(RuntimeError, match="demo/1/add.mindir"):
        serve(one_model("add", "x, y", "z", 1))


@pytest.mark.parametrize("device", ["GPU", "Ascend"])
def test_a_device_without_backend_is_named(serve, device):
    with pytest.raises(RuntimeError, match=f"device type is {device}, but no installed backend"):
        serve(one_model("add", "x, y", "z", 1), "add", device_type=device)


def test_encrypted_models_need_their_key(serve, tmp_path, infer):
    import mycelia as ms
    from mycelia import nn

    class Negative(nn.Cell):
        def construct(self, x):
            return -x

    (tmp_path / "demo" / "1").mkdir(parents=True)
    key = b"0123456789ABCDEF"
    file = str(tmp_path / "demo" / "1" / "secret")
    ms.export(Negative(), ms.Tensor(np.zeros((2,), np.float32)), file_name=file, file_format="MINDIR",
              enc_key=key)  # fmt: skip
    config = one_model("secret", "x", "y", 1, ", with_batch_dim=False")
    x = floats(2)
    engine = serve(config, dec_key=key)
    np.testing.assert_array_equal(infer(engine, "predict", {"x": x})[0]["y"], -x)
    with pytest.raises(RuntimeError, match="secret.mindir.*encrypted"):
        serve(config)
    with pytest.raises(RuntimeError, match="secret.mindir"):
        serve(config, dec_key=b"another key.....")


def test_the_newest_version_is_loaded(serve):
    config = one_model("add", "x, y", "z", 1, ", with_batch_dim=False")
    serve(config, "add", version=2)
    assert serve(config, "add", version=10).version == 10


# ---- formats of plugins ------------------------------------------------------------------------------------


class Tripled:
    """A model of a format that a plugin brings."""

    def __init__(self, path: str, options) -> None:
        from mycelia_serving.engine.loaders import ModelInput

        self.text, self.options = open(path).read(), options
        self.inputs = [ModelInput("x", np.dtype(np.float32), (-1, 2))]

    def __call__(self, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        return (arrays[0] * 3,)


@pytest.fixture
def plugin():
    from mycelia import plugins
    from mycelia.hookspecs import hookimpl

    class Plugin:
        @hookimpl
        def mycelia_servable_loaders(self):
            return {"Triple": Tripled}

    made = Plugin()
    plugins.manager().register(made)
    yield
    plugins.manager().unregister(made)


def test_plugins_bring_formats(serve, tmp_path, infer, plugin):
    (tmp_path / "demo" / "1").mkdir(parents=True)
    (tmp_path / "demo" / "1" / "m.three").write_text("three")
    config = one_model("m", "x", "y", 1).replace("m.mindir", "m.three").replace("MindIR", "TRIPLE")
    engine = serve(config, max_batch_size=4)
    x = floats(2)
    np.testing.assert_array_equal(infer(engine, "predict", {"x": x})[0]["y"], x * 3)


def test_a_format_without_loader_names_what_is_missing(serve, tmp_path):
    (tmp_path / "demo" / "1").mkdir(parents=True)
    (tmp_path / "demo" / "1" / "m.om").write_text("")
    config = one_model("m", "x", "y", 1).replace("m.mindir", "m.om").replace("MindIR", "OM")
    with pytest.raises(RuntimeError, match="m.om cannot be loaded: the format om needs a package.*mindir"):
        serve(config)


def test_lites_name_for_mindir_is_mindir(serve, infer):
    config = one_model("add", "x, y", "z", 1, ", with_batch_dim=False").replace('"MindIR"', '"MindIR_Lite"')
    x = floats(2, 2)
    np.testing.assert_array_equal(infer(serve(config, "add"), "predict", {"x": x, "y": x})[0]["z"], x + x)
