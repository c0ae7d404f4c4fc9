"""Layers that save normalizations."""

from __future__ import annotations

from mycelia import ops
from mycelia.engine.tensors.initializer import initializer
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.dense import Dense


class CommonHeadLastFN(Cell):
    """A last layer on normalized rows: ``multiplier * (x / |x| @ (w / |w|).T + bias)``.

    Shapes: x [n, in_channels] -> [n, out_channels].
    """

    def __init__(self, in_channels, out_channels, weight_init="normal", bias_init="zeros", has_bias=True):
        super().__init__()
        self.weight = Parameter(initializer(weight_init, [out_channels, in_channels]), name="weight")
        self.multiplier = Parameter(Tensor([1.0]), name="multiplier")
        self.has_bias = has_bias
        if has_bias:
            self.bias = Parameter(initializer(bias_init, [out_channels]), name="bias")

    def construct(self, x):
        out = ops.matmul(_rows(x), ops.transpose(_rows(self.weight), (1, 0)))
        return self.multiplier * (out + self.bias if self.has_bias else out)


def _rows(x):
    """Rows of length 1; a tiny square keeps the gradient of a zero row finite."""
    return x * ops.rsqrt(ops.maximum(ops.sum(x * x, 1, True), 1e-12))


class LessBN(Cell):
    """A network marked for fewer batch normalizations.

    With `fn_flag` the last Dense of each cell becomes a CommonHeadLastFN with its weight.
    """

    def __init__(self, network: Cell, fn_flag: bool = False):
        super().__init__()
        self.network = network
        if "less_bn" not in network.get_flags():
            network.set_boost("less_bn")
            network.update_cell_prefix()
            if fn_flag:
                _replace_last(network)
            network.add_flags(defer_inline=True)

    def construct(self, *inputs):
        return self.network(*inputs)


def _replace_last(cell: Cell) -> None:
    last = None
    for name, child in cell.name_cells().items():
        if isinstance(child, Dense):
            last = name, child
        elif child is not cell:
            _replace_last(child)
    if last:
        name, dense = last
        weight = Tensor(dense.weight)
        head = CommonHeadLastFN(dense.in_channels, dense.out_channels, weight, has_bias=False)
        head.update_parameters_name(dense.param_prefix + ".")
        cell.insert_child_to_cell(name, head)
