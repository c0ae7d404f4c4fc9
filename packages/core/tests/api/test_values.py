"""What the calls in the tables `values_*.py` give on small fixed inputs.

A line of a table is an expression, the indented ones below it what it gives: ``float32[2, 3] 1 2 ..`` for a
Tensor, parts of a tuple between semicolons; of more than twelve numbers their sum and a weighted sum. A line
that begins with ``~`` gives random numbers: only dtype and shape count. The numbers are MindSpore's.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import mycelia as ms
from mycelia import mint, nn, ops
from mycelia import numpy as mnp
from mycelia.nn.probability import bijector as msb
from mycelia.nn.probability import distribution as msd


def tables():
    """Each expression with its expected text."""
    for path in sorted(Path(__file__).parent.glob("values_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        expression, expected = "", []
        for line in [*module.CASES.strip("\n").splitlines(), ""]:
            if line.startswith(" " * 8) and not expected:
                expression += " " + line.strip()
            elif line.startswith(" " * 4):
                expected.append(line.strip())
            else:
                if expression:
                    yield pytest.param(expression, " ".join(expected), id=f"{path.stem[7:]}: {expression}")
                expression, expected = line, []


def t(values, dtype="float32"):
    return ms.Tensor(np.array(values, dtype))


def par(x):
    return ms.Parameter(x.copy(), name="w")


def coo(x):
    rows, columns = np.nonzero(np.ones(x.shape))
    return ms.COOTensor(t(np.stack([rows, columns], 1), "int32"), x.reshape(-1), tuple(x.shape))


def csr(x):
    m, n = x.shape
    places = t(np.arange(m + 1) * n, "int32"), t(np.tile(np.arange(n), m), "int32")
    return ms.CSRTensor(*places, x.reshape(-1), (m, n))


def inputs():
    """The names that the expressions use, made anew for each: some change them."""
    x = t([[0.5, -1, 2], [3, 0.25, -0.75]])

    def updated(change):
        weight = ms.Parameter(x.copy(), name="weight")
        change(weight)
        return weight

    return dict(
        np=np, ms=ms, nn=nn, ops=ops, mnp=mnp, mint=mint, msd=msd, msb=msb, t=t, par=par, coo=coo, csr=csr,
        updated=updated, x=x,
        y=t([[2, -0.5, 1], [-3, 1.5, 0.25]]), u=t([[0.2, 0.4, 0.9], [0.6, 0.1, 0.5]]),
        half=t([[0, 1, 1], [0.5, 0, 1]]), p=t([[1.5, 2, 3], [1.25, 4, 2.5]]),
        i=t([[6, 3, -4], [2, 0, 7]], "int32"), j=t([[4, 1, 3], [5, 2, 6]], "int32"),
        b=t([[1, 0, 1], [0, 1, 1]], "bool"), c=t([[1, 1, 0], [0, 1, 0]], "bool"),
        v=t([1, -2, 0.5]), q=t([0.5, 1.5, 2]), spd=t([[4, 2, 1], [2, 5, 3], [1, 3, 6]]),
        z=t([[1 + 2j, 0.5 - 1j], [3j, -2]], "complex64"), ids=t([2, 0], "int32"),
        img=t(np.arange(16).reshape(1, 1, 4, 4) % 7), vol=t(np.arange(64).reshape(1, 1, 4, 4, 4) % 11),
        rgb=t(np.arange(12).reshape(2, 2, 3) / 12), boxes=t([[4, 8, 20, 30], [10, 2, 16, 12]]),
    )  # fmt: skip


def parts(result):
    """The results of a call, one after the other."""
    if isinstance(result, (ms.COOTensor, ms.CSRTensor)):
        return parts(result.values)
    if isinstance(result, (tuple, list)):
        return [part for each in result for part in parts(each)]
    return [result]


def numbers(text):
    return [float(word) for word in text.replace(",", " ").split()]


def check(found, expected, random):
    if isinstance(found, float):
        assert found == pytest.approx(float(expected), rel=1e-4)
        return
    if not isinstance(found, ms.Tensor):
        assert "".join(str(found).split()) == "".join(expected.split())
        return
    head, _, values = expected.partition("]")
    assert f"{str(found.dtype).lower()}{list(found.shape)}" == head + "]"
    if random:
        return
    array = found.asnumpy().reshape(-1)
    if values.strip().startswith("sum"):
        wide = array.astype(np.float64)
        wanted = numbers(values.replace("sum", "").replace("weighted", ""))
        array = np.array([wide.sum(), (wide * (np.arange(wide.size) % 5 + 1)).sum()])
        scale = np.abs(wide).sum() * 5
    else:
        wanted, scale = numbers(values), 1
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], -1).reshape(-1)
    np.testing.assert_allclose(array.astype(np.float64), wanted, 1e-4, 1e-5 * max(scale, 1))


@pytest.mark.parametrize("expression, expected", list(tables()))
def test_values(expression, expected):
    found = parts(eval(expression.lstrip("~"), inputs()))
    wanted = expected.split(" ; ") if len(found) != 1 else [expected]
    assert len(found) == len(wanted)
    for each, text in zip(found, wanted):
        check(each, text, expression.startswith("~"))
