"""ONNX nodes through `.ms` files: converted, loaded and run."""

from __future__ import annotations

import numpy as np

import mycelia_lite as mslite

from .onnx_models import model, node, write


def answers(tmp_path, kind, arrays, count=1, opset=18, constants=(), domain="", shapes=None, **attributes):
    """The outputs of one node on arrays; those at positions `constants` are weights, None is left out.

    `shapes`: other shapes than the arrays' to declare, None for an open size.
    """
    names = [f"x{i}" if a is not None else "-" for i, a in enumerate(arrays)]
    given = {n: a for i, (n, a) in enumerate(zip(names, arrays)) if i not in constants and a is not None}
    weights = {f"x{i}": arrays[i] for i in constants}
    outputs = " ".join(f"y{i}" for i in range(count))
    message = model(
        [node(kind, " ".join(names), outputs, name="it", domain=domain, **attributes)],
        {n: (a.dtype, (shapes or {}).get(n, a.shape)) for n, a in given.items()}, outputs, weights, opset,
    )  # fmt: skip
    if domain:
        message.opset_import.add(domain=domain, version=1)
    mslite.Converter().convert(mslite.FmkType.ONNX, write(tmp_path / "m.onnx", message), str(tmp_path / "m"))
    return run(tmp_path / "m.ms", given)


def run(path, given):
    """What a file answers to arrays by name."""
    net = mslite.Model()
    net.build_from_file(str(path))
    inputs = net.get_inputs()
    if any(list(t.shape) != list(given[t.name].shape) for t in inputs):
        net.resize(inputs, [list(given[t.name].shape) for t in inputs])
        inputs = net.get_inputs()
    for tensor in inputs:
        tensor.set_data_from_numpy(np.ascontiguousarray(given[tensor.name]))
    return [t.get_data_to_numpy() for t in net.predict(inputs)]


def close(found, wanted, tolerance=2e-5):
    """Whether dtype, shape and numbers agree."""
    wanted = np.asarray(wanted)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    if wanted.dtype.kind == "f":
        assert np.allclose(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        assert np.array_equal(found, wanted)
