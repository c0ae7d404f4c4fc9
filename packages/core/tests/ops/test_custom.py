"""Ops of the user's, hooks on gradients, descriptions of kernels, functions of Python values."""

import shutil
import subprocess

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn, ops

A, B = np.array([1.0, 2.0], np.float32), np.array([3.0, 4.0], np.float32)


def a():
    return Tensor(A)


def b():
    return Tensor(B)


def test_functions_in_python():
    add = ops.Custom(lambda u, v: u + v, lambda u, _: u, lambda u, _: u, "pyfunc")
    np.testing.assert_array_equal(add(a(), b()).asnumpy(), A + B)
    np.testing.assert_array_equal(ms.jit(lambda u, v: add(u, v) * 2)(a(), b()).asnumpy(), (A + B) * 2)
    both = ops.Custom(lambda u: (u + 1, u > 1), ([2], [2]), (ms.float32, ms.bool_))
    assert [t.asnumpy().tolist() for t in both(a())] == [[2, 3], [False, True]]


def test_a_function_in_python_has_the_gradient_that_is_given():
    product = ops.Custom(
        lambda u, v: u * v, lambda u, _: u, lambda u, _: u, bprop=lambda u, v, out, dout: (dout * v, dout * u)
    )

    def f(u, v):
        return product(u, v) * 2

    for gradient in (ms.grad(f, (0, 1)), ms.jit(ms.grad(f, (0, 1)))):
        assert [g.asnumpy().tolist() for g in gradient(a(), b())] == [[6, 8], [2, 4]]


def test_kernels_in_the_hybrid_language():
    @ops.kernel
    def outer(u, v):
        out = output_tensor((2, 2), u.dtype)  # noqa: F821  (a name of the language)
        for i, j in grid((2, 2)):  # noqa: F821
            out[i, j] = u[i] * v[j]
        return out

    op = ops.Custom(outer, func_type="hybrid")
    np.testing.assert_array_equal(op(a(), b()).asnumpy(), np.outer(A, B))


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_functions_in_a_shared_library(tmp_path):
    source = tmp_path / "triple.c"
    source.write_text(
        "#include <stdint.h>\n"
        "int triple(int n, void **data, int *ranks, int64_t **shapes,\n"
        "           const char **types, void *stream, void *extra) {\n"
        "  if (n != 2) return 1;\n"
        "  for (int64_t i = 0; i < shapes[0][0]; ++i) ((float *)data[1])[i] = 3 * ((float *)data[0])[i];\n"
        "  return 0;\n}\n"
    )
    library = tmp_path / "triple.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    op = ops.Custom(f"{library}:triple", lambda s: s, lambda t: t, "aot")
    np.testing.assert_array_equal(op(a()).asnumpy(), A * 3)
    with pytest.raises(RuntimeError):
        ops.Custom(f"{library}:missing", (2,), ms.float32, "aot")(a())


@pytest.mark.parametrize(
    "arguments, error",
    [
        ((max, (2,), ms.float32, "nonsense"), ValueError),
        ((max, (2,), ms.float32, "aot"), TypeError),
        ((max, (2,), ms.float32, "hybrid"), TypeError),
        ((max, None, None, "pyfunc"), TypeError),
    ],
)
def test_custom_refuses(arguments, error):
    with pytest.raises(error):
        ops.Custom(*arguments)


def test_what_needs_a_device_says_so():
    with pytest.raises(RuntimeError, match="Ascend"):
        ops.Custom("f", (2,), ms.float32, "aicpu")(a())
    builder = ops.CustomOpBuilder("mine", "mine.cc", backend="CPU", cflags="-O2 -g")
    assert builder.get_sources() == ["mine.cc"] and builder.get_cflags() == ["-O2", "-g"]
    with pytest.raises(RuntimeError):
        builder.load()


def test_pyfunc_gives_a_tuple():
    (found,) = ops.PyFunc(lambda u: u * 2, [ms.float32], [(2,)], [ms.float32], [(2,)])(a())
    np.testing.assert_array_equal(found.asnumpy(), A * 2)


def _clipped(gradient):
    return ops.clamp(gradient, -3.5, 3.5)


class Clipped(nn.Cell):
    def __init__(self):
        super().__init__()
        self.insert = ops.InsertGradientOf(_clipped)

    def construct(self, u, v):
        return self.insert(u * v) * v


@pytest.mark.parametrize("call", [lambda f: f, ms.jit], ids=["eager", "graph"])
def test_a_gradient_is_replaced_on_its_way(call):
    found = call(ms.grad(Clipped(), (0, 1)))(a(), b())
    assert [g.asnumpy().tolist() for g in found] == [[9, 14], [6, 15]]


def test_a_hook_sees_gradients_and_may_change_them():
    seen = []

    def hook(gradients):
        seen.append([g.asnumpy().tolist() for g in gradients])
        return tuple(g * 2 for g in gradients)

    through = ops.HookBackward(hook)
    found = ms.grad(lambda u, v: through(u * v) * v, (0, 1))(a(), b())
    assert seen == [[[3, 4]]]
    assert [g.asnumpy().tolist() for g in found] == [[18, 32], [9, 24]]

    def fork(u, v):
        left, right = through(u, v)
        return left * right

    assert [g.asnumpy().tolist() for g in ms.grad(fork, (0, 1))(a(), b())] == [[6, 8], [2, 4]]
    with pytest.raises(TypeError):
        ms.grad(lambda u: ops.HookBackward(lambda g: g[0])(u * u))(a())
    with pytest.raises(TypeError):
        ops.HookBackward(3)


def test_a_morph_is_the_function_that_it_was_made_of():
    morph = ops.Morph(lambda u: u * 100, None, None)
    assert ms.jit(lambda u: morph(u) + 1)(a()).asnumpy().tolist() == [101, 201]


def test_descriptions_of_kernels_are_dicts():
    info = (
        ops.CustomRegOp().input(0, "x").output(0, "y", "dynamic").attr("k", "required", "int", value=3)
        .dtype_format(ops.DataType.F16_Default, ops.DataType.I32_5HD).target("CPU").get_op_info()
    )  # fmt: skip
    assert info == {
        "op_name": "Custom",
        "inputs": [{"index": 0, "name": "x", "paramType": "required"}],
        "outputs": [{"index": 0, "name": "y", "paramType": "dynamic"}],
        "attr": [{"name": "k", "paramType": "required", "type": "int", "value": 3}],
        "fusion_type": "",
        "dtype_format": [(("float16", "DefaultFormat"), ("int32", "NC1HWC0"))],
        "target": "CPU",
    }
    tbe = ops.TBERegOp("Mine").kernel_name("mine").partial_flag().real_input_index([1, 0]).get_op_info()
    assert (tbe["imply_type"], tbe["kernel"], tbe["partial_flag"]) == ("TBE", "mine", True)
    assert ops.op_info_register(info)(abs)(-3) == 3
    with pytest.raises(ValueError):
        ops.CpuRegOp("Mine").input(0, "x").dtype_format(*[ops.DataType.F32_Default] * 2)
    with pytest.raises(TypeError):
        ops.AiCPURegOp("Mine").input("0", "x")


def test_functions_of_python_values():
    assert ops.make_range(0, 10, 3) == (0, 3, 6, 9)
    assert ops.tuple_setitem((1, 2), 0, 5) == (5, 2) and ops.list_setitem([1, 2], 1, 5) == [1, 5]
    assert (ops.scalar_add(1, 2), ops.scalar_div(1, 2), ops.scalar_usub(3)) == (3, 0.5, -3)
    assert ops.scalar_floordiv(x=7, y=2) == 3
    assert ops.broadcast_gradient_args((1, 2), (2, 2)) == ((0,), ())
    assert ops.tuple_to_array((1, 2)).dtype is ms.int32 and ops.tuple_to_array((1.0,)).dtype is ms.float32
    assert ops.scalar_to_tensor(3).dtype is ms.float32
    with pytest.raises(TypeError):
        ops.tuple_to_array((1, 2.0))
    with pytest.raises(ValueError):
        ops.scalar_cast(1, ms.float32)
