"""Random files of the operators that rules are about, often in the spellings that rules look for."""

from __future__ import annotations

import math

import numpy as np

from mycelia_lite.format import Table

from .small_models import Net

_ACTIVATIONS = ("RELU", "RELU6", "SIGMOID", "TANH", "HSWISH", "HSIGMOID", "SWISH")
_NUMBERS = (0.0, 1.0, 0.5, 3.0, 6.0, 1 / 6, -1.0, math.sqrt(2), 1e-5)


class Graph:
    """Grows a net node by node; tensors come with their shapes."""

    def __init__(self, seed: int) -> None:
        self.net = Net(seed)
        self.random = np.random.default_rng(seed)
        self.pool: list[tuple[int, tuple[int, ...]]] = []
        for _ in range(self.random.integers(1, 3)):
            rank = int(self.random.integers(2, 5))
            shape = tuple(int(n) for n in self.random.integers(1, 5, rank))
            self.pool.append((self.net.input(*shape), shape))

    def any(self):
        """A tensor, the last ones more often."""
        back = min(int(self.random.geometric(0.6)), len(self.pool))
        return self.pool[-back]

    def choose(self, options):
        return options[int(self.random.integers(len(options)))]

    def number(self, shape):
        """A constant that is broadcast to `shape`."""
        how = self.random.integers(4)
        if how == 0:
            return self.net.constant(self.choose(_NUMBERS))
        if how == 1:
            return self.net.weights(shape[-1])
        if how == 2:
            return self.net.constant(np.full((1,) * len(shape), self.choose(_NUMBERS)))
        return self.net.weights(*(n if self.random.random() < 0.7 else 1 for n in shape))

    def add(self, tensor: int, shape) -> None:
        if len(shape) < 2 or math.prod(shape) > 4096:
            return  # nothing grows on it
        self.pool.append((tensor, tuple(int(n) for n in shape)))

    def grow(self, nodes: int, only: tuple[str, ...] = ()) -> Table:
        steps = [getattr(self, name) for name in dir(self) if name.startswith("step_")]
        steps = [getattr(self, f"step_{name}") for name in only] or steps
        for _ in range(nodes):
            x, shape = self.any()
            self.choose(steps)(self.net, x, shape)
        read = {int(i) for n in self.net.nodes for i in n.inputIndex}
        made = [int(o) for n in self.net.nodes for o in n.outputIndex]
        inner = [t for t in made if t in read and self.random.random() < 0.05]
        return self.net.model(*(inner + [t for t in made if t not in read]))

    # ---- steps

    def step_activation(self, net, x, shape):
        self.add(net.activation(x, self.choose(_ACTIVATIONS)), shape)

    def step_function(self, net, x, shape):
        self.add(net(self.choose(("Abs", "Neg", "Erf", "Square")), x), shape)

    def step_clip(self, net, x, shape):
        low, high = self.choose(((0, 6), (0, math.inf), (-1, 1), (0, 1)))
        self.add(net("Clip", x, min=low, max=high), shape)

    def step_arithmetic(self, net, x, shape):
        kind = self.choose(("AddFusion", "MulFusion", "SubFusion", "Maximum", "Minimum", "DivFusion"))
        same = [t for t, s in self.pool if s == shape]
        other = self.number(shape) if kind == "DivFusion" or self.random.random() < 0.6 else self.choose(same)
        if kind == "DivFusion":
            other = net.constant(self.choose((2.0, 6.0, math.sqrt(2), 1.0)))
        pair = (x, other) if kind == "DivFusion" or self.random.random() < 0.7 else (other, x)
        self.add(net(kind, *pair), shape)

    def step_reshape(self, net, x, shape):
        size, new = math.prod(shape), []
        while size > 1 and len(new) < 3:
            n = self.choose([d for d in range(1, size + 1) if size % d == 0])
            new.append(n)
            size //= n
        new.append(size)
        self.add(net.reshape(x, *new), new)

    def step_unit_axis(self, net, x, shape):
        ones = [i for i, n in enumerate(shape) if n == 1]
        if ones and len(shape) > 2 and self.random.random() < 0.6:
            axis = self.choose(ones)
            self.add(net("Squeeze", x, axis=[axis]), shape[:axis] + shape[axis + 1 :])
        elif len(shape) < 4:
            axis = int(self.random.integers(len(shape) + 1))
            self.add(net("ExpandDims", x, net.constant(axis, np.int32)), (*shape[:axis], 1, *shape[axis:]))

    def step_transpose(self, net, x, shape):
        order = [int(i) for i in self.random.permutation(len(shape))]
        if len(shape) == 4 and self.random.random() < 0.8:
            order = self.choose(([0, 2, 3, 1], [0, 3, 1, 2]))
        self.add(net.transpose(x, *order), [shape[i] for i in order])

    def step_slice(self, net, x, shape):
        begin = [int(self.random.integers(n)) if self.random.random() < 0.4 else 0 for n in shape]
        end = [int(self.random.integers(b + 1, n + 1)) for b, n in zip(begin, shape)]
        end = [n if self.random.random() < 0.5 else e for e, n in zip(end, shape)]
        self.add(net.slice(x, begin, end), [e - b for b, e in zip(begin, end)])

    def step_concat(self, net, x, shape):
        axis = int(self.random.integers(len(shape)))
        if shape[axis] > 8:
            return
        same = [t for t, s in self.pool if s == shape]
        parts = [x, self.choose(same)][: int(self.random.integers(1, 3))]
        new = [n * len(parts) if i == axis else n for i, n in enumerate(shape)]
        self.add(net("Concat", *parts, axis=axis), new)

    def step_slices_together(self, net, x, shape):
        axis = int(self.random.integers(len(shape)))
        at = int(self.random.integers(shape[axis] + 1))
        if not 0 < at < shape[axis]:
            return
        parts = []
        for b, e in ((0, at), (at, shape[axis])):
            begin, end = [0] * len(shape), list(shape)
            begin[axis], end[axis] = b, e
            parts.append(net.slice(x, begin, end))
        if self.random.random() < 0.3:
            parts.reverse()
        self.add(net("Concat", *parts, axis=axis), shape)

    def step_reduce(self, net, x, shape):
        axes = [i for i in range(len(shape)) if self.random.random() < 0.4] or [len(shape) - 1]
        keep = self.random.random() < 0.6 or len(shape) - len(axes) < 2
        mode = self.choose(("ReduceMean", "ReduceSum", "ReduceMax"))
        new = [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]
        self.add(net.reduce(x, *axes, mode=mode, keep_dims=keep), new)

    def step_softmax(self, net, x, shape):
        self.add(net("Softmax", x, axis=[int(self.random.integers(len(shape)))]), shape)

    def step_product(self, net, x, shape):
        outputs, turned = int(self.random.integers(1, 6)), bool(self.random.random() < 0.5)
        weights = net.weights(*((outputs, shape[-1]) if turned else (shape[-1], outputs)))
        more = [net.weights(outputs)] if self.random.random() < 0.3 else []
        self.add(net("MatMulFusion", x, weights, *more, transpose_b=turned), (*shape[:-1], outputs))

    def step_square_product(self, net, x, shape):
        turned = net.transpose(x, *range(len(shape) - 2), len(shape) - 1, len(shape) - 2)
        self.add(net("MatMulFusion", x, turned), (*shape[:-1], shape[-2]))

    def step_scale(self, net, x, shape):
        more = [net.weights(shape[-1])] if self.random.random() < 0.7 else []
        self.add(net("ScaleFusion", x, net.weights(shape[-1]), *more, axis=len(shape) - 1), shape)

    def step_each(self, net, x, shape):
        """A factor and a summand for each index of an axis."""
        axis = int(self.random.integers(len(shape)))
        each = [n if i == 0 else 1 for i, n in enumerate(shape[axis:])]
        self.add(net("AddFusion", net("MulFusion", x, net.weights(*each)), net.weights(*each)), shape)

    def step_batch_norm(self, net, x, shape):
        parameters = [net.weights(shape[-1]) for _ in range(3)]
        variance = net.constant(0.5 + np.abs(self.random.normal(size=shape[-1])).astype(np.float32))
        self.add(net("FusedBatchNorm", x, *parameters, variance, epsilon=1e-3), shape)

    def step_conv(self, net, x, shape):
        if len(shape) != 4:
            return
        size, outputs = self.choose(((1, 4), (3, 2), (1, 2))), int(self.random.integers(1, 5))
        size = size[0]
        pad = size // 2
        bias = self.random.random() < 0.5
        y = net.conv(x, shape[-1], outputs, size, bias, pad_list=[pad] * 4)
        self.add(y, (*shape[:-1], outputs))

    def step_pad(self, net, x, shape):
        rows = [[0, int(self.random.integers(3))] for _ in shape]
        if len(shape) == 4 and self.random.random() < 0.7:
            rows[0] = rows[3] = [0, 0]
        value = self.choose((0.0, 0.0, 1.0))
        y = net("PadFusion", x, net.constant(rows, np.int32), padding_mode="CONSTANT", constant_value=value)
        self.add(y, [n + b + e for n, (b, e) in zip(shape, rows)])

    def step_gather(self, net, x, shape):
        axis = int(self.random.integers(len(shape)))
        places = self.random.integers(shape[axis], size=2)
        y = net("Gather", x, net.constant(places, np.int32), net.constant(axis, np.int32))
        self.add(y, (*shape[:axis], 2, *shape[axis + 1 :]))

    def step_place(self, net, x, shape):
        """One place of an axis, which may go."""
        axis, keep = int(self.random.integers(len(shape))), bool(self.random.random() < 0.5)
        index = int(self.random.integers(-shape[axis], shape[axis]))
        y = net("Gather", x, net.constant([index] if keep else index, np.int32), net.constant(axis, np.int32))
        self.add(y, (*shape[:axis], *[1] * keep, *shape[axis + 1 :]))

    def step_layer_norm(self, net, x, shape):
        mean = net.reduce(x, len(shape) - 1)
        centred = net("SubFusion", x, mean)
        variance = net.reduce(net("Square", centred), len(shape) - 1)
        root = net("Sqrt", net("AddFusion", variance, net.constant(0.01)))
        y = net("DivFusion", centred, root)
        if self.random.random() < 0.7:
            y = net("MulFusion", y, net.weights(shape[-1]))
            y = net("AddFusion", y, net.weights(shape[-1]))
        self.add(y, shape)

    def step_gate(self, net, x, shape):
        gate = net.activation(x, self.choose(("SIGMOID", "HSIGMOID")))
        self.add(net("MulFusion", gate, self.choose([t for t, s in self.pool if s == shape])), shape)

    def step_gelu(self, net, x, shape):
        wave = net("Erf", net("MulFusion", x, net.constant(math.sqrt(0.5))))
        y = net("MulFusion", x, net("AddFusion", wave, net.constant(1.0)))
        self.add(net("MulFusion", y, net.constant(self.choose((0.5, 0.5, 1.0)))), shape)

    def step_prelu(self, net, x, shape):
        less = net("MulFusion", net("Minimum", x, net.constant(0.0)), self.number(shape))
        self.add(net("AddFusion", net.activation(x, "RELU"), less), shape)

    def step_rows(self, net, x, shape):
        rows = net.reshape(x, math.prod(shape[:-1]), shape[-1])
        y = net("MatMulFusion", rows, net.weights(shape[-1], 3))
        self.add(net.reshape(y, *shape[:-1], 3), (*shape[:-1], 3))

    def step_cast(self, net, x, shape):
        wide = net("Cast", x, net.constant(44, np.int32))  # float64
        self.add(net("Cast", wide, net.constant(43, np.int32)), shape)

    def step_weighted_sum(self, net, x, shape):
        product = net("MulFusion", x, net.weights(shape[-1]))
        self.add(net.reduce(product, len(shape) - 1, mode="ReduceSum"), (*shape[:-1], 1))

    def step_of_constants(self, net, x, shape):
        self.add(net("MulFusion", x, net("Neg", net.weights(shape[-1]))), shape)
