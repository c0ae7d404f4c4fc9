"""An activation behind a layer gives its own numbers on both sides of 0 and beyond 6, joined and apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.format import write

from ..converter.optimise.small_models import Net


def _gelu(x):
    return x / 2 * (1 + np.array([math.erf(v) for v in (x / math.sqrt(2)).ravel()]).reshape(x.shape))


ACTIVATIONS = {
    "RELU": lambda x: np.maximum(x, 0),
    "RELU6": lambda x: np.clip(x, 0, 6),
    "HSWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "SWISH": lambda x: x / (1 + np.exp(-x)),
    "SIGMOID": lambda x: 1 / (1 + np.exp(-x)),
    "GELU": _gelu,
    "TANH": np.tanh,
}
LAYERS = ("MatMulFusion", "FullConnection", "Conv2DFusion", "depthwise")


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("inside", [False, True], ids=["node", "attribute"])
@pytest.mark.parametrize("kind", ACTIVATIONS)
@pytest.mark.parametrize("layer", LAYERS)
def test_numbers_of_an_activation(tmp_path, layer, kind, inside, apart):
    """Each output of the layer is one input, so that all numbers from -9 to 9 pass the activation."""
    if inside and kind not in ("RELU", "RELU6"):
        pytest.skip("layers of files have these two")
    net, x = Net(), np.linspace(-9, 9, 4 * 5 * 16, dtype=np.float32)
    more = {"activation_type": kind} if inside else {}
    unit = np.eye(16, dtype=np.float32)
    if layer in ("Conv2DFusion", "depthwise"):
        x = x.reshape(1, 4, 5, 16)
        weight = net.constant(np.ones((16, 1, 1, 1)) if layer == "depthwise" else unit.reshape(16, 1, 1, 16))
        group = 16 if layer == "depthwise" else 1
        more |= dict(kernel_size=[1, 1], stride=[1, 1], dilation=[1, 1], pad_list=[0] * 4, group=group)
        made = net("Conv2DFusion", net.input(*x.shape), weight, in_channel=16, out_channel=16, **more)
    else:
        x = x.reshape(20, 16)
        made = net(layer, net.input(*x.shape), net.constant(unit), **more)
    made = made if inside else net.activation(made, kind)
    write(str(tmp_path / "m.ms"), net.model(made))
    model = mslite.Model()
    model.build_from_file(str(tmp_path / "m.ms"))
    model.get_inputs()[0].set_data_from_numpy(x)
    watch = {"after": lambda *node: True} if apart else {}
    found = model.predict(model.get_inputs(), **watch)[0].get_data_to_numpy()
    np.testing.assert_allclose(found, ACTIVATIONS[kind](x.astype(np.float64)), rtol=1e-5, atol=2e-6)
