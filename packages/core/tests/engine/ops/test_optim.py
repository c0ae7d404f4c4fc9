"""Two optimizer steps from one start, against the figures that MindSpore 2.10 prints on a CPU."""

import numpy as np
import pytest

import mycelia.ops
import mycelia.tensor  # noqa: F401
from mycelia.ops.define import registry
from mycelia.tensor import Tensor

START = [1.0, -2.0, 3.0]
GRADIENTS = [[0.1, -0.2, 0.3], [0.3, 0.1, -0.4]]
ZEROS, ONES, TENTHS = [0.0] * 3, [1.0] * 3, [0.1] * 3
ADAM = (ZEROS, ZEROS)


def powers(step):
    return 0.9 ** (step + 1), 0.999 ** (step + 1)


# op, state, inputs behind the state for (gradient, step), attributes, the parameter after two steps
STEPS = {
    "sgd": ("sgd", (ZEROS, ONES), lambda g, t: (g, 0.1, 0.0), {}, [0.96, -1.99, 3.01]),
    "sgd with momentum": (
        "sgd",
        (ZEROS, ONES),
        lambda g, t: (g, 0.1, 0.9),
        dict(dampening=0.3, weight_decay=0.01),
        [0.9574077, -1.9638155, 2.9632232],
    ),
    "sgd nesterov": (
        "sgd",
        (ZEROS, ONES),
        lambda g, t: (g, 0.1, 0.9),
        dict(weight_decay=0.01, nesterov=True),
        [0.9113297, -1.9556594, 2.9809892],
    ),
    "momentum": ("apply_momentum", (ZEROS,), lambda g, t: (0.1, g, 0.9), {}, [0.951, -1.972, 2.983]),
    "momentum scaled": (
        "apply_momentum",
        (ZEROS,),
        lambda g, t: (0.1, g, 0.9),
        dict(gradient_scale=0.5, weight_decay=0.01),
        [0.972606, -1.9802121, 2.9828181],
    ),
    "adam": (
        "adam",
        ADAM,
        lambda g, t: (*powers(t), 0.1, 0.9, 0.999, 1e-8, g),
        {},
        [0.8082226, -1.8733665, 2.919351],
    ),
    "adam nesterov": (
        "adam",
        ADAM,
        lambda g, t: (*powers(t), 0.1, 0.9, 0.999, 1e-8, g),
        dict(use_nesterov=True),
        [0.6568024, -1.8193221, 2.8869574],
    ),
    "adam decay": (
        "adam",
        ADAM,
        lambda g, t: (*powers(t), 0.1, 0.9, 0.999, 1e-8, g),
        dict(weight_decay=0.1),
        [0.8032153, -1.818288, 2.8475194],
    ),
    "amsgrad": (
        "adam_amsgrad",
        (ZEROS, ZEROS, ZEROS),
        lambda g, t: (*powers(t), 0.1, 0.9, 0.999, 1e-8, g),
        {},
        [0.8082227, -1.8733665, 2.919351],
    ),
    "adam weight decay": (
        "adam_weight_decay",
        ADAM,
        lambda g, t: (0.1, 0.9, 0.999, 1e-6, 0.1, g),
        {},
        [0.2771483, -1.5340148, 2.7094946],
    ),
    "rms prop": (
        "apply_rms_prop",
        (ONES, ZEROS),
        lambda g, t: (0.1, g, 0.9, 0.5, 1e-10),
        {},
        [0.9510659, -1.9795269, 2.996599],
    ),
    "rms prop centred": (
        "apply_centered_rms_prop",
        (ZEROS, ONES, ZEROS),
        lambda g, t: (g, 0.1, 0.9, 0.5, 1e-10),
        {},
        [0.9510342, -1.9795203, 2.99658],
    ),
    "adagrad": ("apply_adagrad", (TENTHS,), lambda g, t: (0.1, g), {}, [0.9027668, -1.9723676, 2.9987876]),
    "adadelta": (
        "apply_adadelta",
        (ZEROS, ZEROS),
        lambda g, t: (0.1, 0.9, 1e-6, g),
        {},
        [0.9992576, -1.9998924, 3.0000482],
    ),
    "adamax": (
        "apply_ada_max",
        ADAM,
        lambda g, t: (powers(t)[0], 0.1, 0.9, 0.999, 0.1, g),
        {},
        [0.8986842, -1.919289, 2.9386842],
    ),
    "proximal adagrad": (
        "apply_proximal_adagrad",
        (TENTHS,),
        lambda g, t: (0.1, 0.01, 0.1, g),
        {},
        [0.8502066, -1.8682746, 2.880429],
    ),
    "rprop": ("rprop", (ZEROS, TENTHS), lambda g, t: (g,), {}, [0.78, -1.9, 2.9]),
}


@pytest.mark.parametrize("name", STEPS)
def test_two_steps_give_mindspore_figures(name):
    op, state, inputs, attributes, want = STEPS[name]
    parameter, *state = (Tensor(np.array(x, np.float32)) for x in (START, *state))
    for step, gradient in enumerate(GRADIENTS):
        given = (
            x if isinstance(x, float) else Tensor(np.array(x, np.float32)) for x in inputs(gradient, step)
        )
        registry[op](parameter, *state, *given, **attributes)
    np.testing.assert_allclose(parameter.asnumpy(), want, rtol=2e-5)


def test_shapes_that_differ_are_refused():
    three, two = (Tensor(np.ones(n, np.float32)) for n in (3, 2))
    with pytest.raises(ValueError, match="adagrad.*one shape"):
        registry["apply_adagrad"](three, three, 0.1, two)
