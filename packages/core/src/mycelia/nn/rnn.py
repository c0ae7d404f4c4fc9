"""Recurrent layers and cells: RNN, LSTM, GRU. Weights as MindSpore orders them; LSTM gates are i, f, g, o."""

from __future__ import annotations

import math

from mycelia.engine.base import dtypes, errors, log
from mycelia.engine.base.dtypes import float32
from mycelia.engine.ops.arrays import gathering as _gathering
from mycelia.engine.ops.arrays import masks as _masks
from mycelia.engine.ops.arrays.axes import flip, transpose
from mycelia.engine.ops.arrays.create import arange, zeros
from mycelia.engine.ops.arrays.joining import concat, stack
from mycelia.engine.ops.arrays.shape import broadcast_to, expand_dims, reshape
from mycelia.engine.ops.nn_ops import gru as _gru
from mycelia.engine.ops.nn_ops import rnn as _rnn
from mycelia.engine.tensors.initializer import Uniform, initializer
from mycelia.engine.tensors.tensor import Parameter, ParameterTuple, Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.parameters import check_positive


def _reverse_steps(x, lengths):
    """Each sequence of x [T, B, F] backwards over its own length; padding stays where it is."""
    steps = reshape(arange(x.shape[0]), (-1, 1))
    last = reshape(lengths, (1, -1))
    inside = steps < last
    source = _masks.where(inside, last - 1 - steps, steps + last * 0)
    index = broadcast_to(expand_dims(source, 2), x.shape)
    return _gathering.gather_d(x, 0, index)


def _at_last_step(y, lengths):
    """y [T, B, H] at step length - 1 of each sequence: [B, H]."""
    last = reshape(lengths - 1, (1, -1, 1))
    index = broadcast_to(last, (1, *y.shape[1:]))
    return reshape(_gathering.gather_d(y, 0, index), y.shape[1:])


def _blank_padding(y, lengths):
    """Zeros after the end of each sequence of y [T, B, H]."""
    steps = reshape(arange(y.shape[0]), (-1, 1, 1))
    return _masks.where(steps < reshape(lengths, (1, -1, 1)), y, 0.0)


class _Recurrent(Cell):
    """Stacked, possibly bidirectional layers over a sequence."""

    _gates = 1

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        has_bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        dtype=float32,
    ):
        super().__init__()
        owner = type(self).__name__
        check_positive(owner, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        for name, value in (
            ("has_bias", has_bias),
            ("batch_first", batch_first),
            ("bidirectional", bidirectional),
        ):
            if not isinstance(value, bool):
                raise errors.type_error(owner, f"{name} must be a bool, but got {value!r}")
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout < 1:
            raise errors.value_error(owner, f"dropout must be in [0, 1), but got {dropout!r}")
        if dropout and num_layers == 1:
            log.logger(__name__).warning("%s: dropout acts between layers, but there is only one", owner)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.has_bias, self.batch_first, self.dropout, self.bidirectional = (
            has_bias,
            batch_first,
            float(dropout),
            bidirectional,
        )
        self._directions = 2 if bidirectional else 1
        bound = Uniform(1 / math.sqrt(hidden_size))
        rows = self._gates * hidden_size
        weights: dict[str, list[Parameter]] = {"weight_ih": [], "weight_hh": [], "bias_ih": [], "bias_hh": []}
        for layer in range(num_layers):
            for direction in range(self._directions):
                suffix = f"l{layer}" + ("_reverse" if direction else "")
                inputs = input_size if layer == 0 else hidden_size * self._directions
                shapes = {
                    "weight_ih": (rows, inputs),
                    "weight_hh": (rows, hidden_size),
                    "bias_ih": (rows,),
                    "bias_hh": (rows,),
                }
                for kind, shape in shapes.items():
                    if has_bias or kind.startswith("weight"):
                        name = f"{kind}_{suffix}"
                        weights[kind].append(Parameter(initializer(bound, shape, dtype), name=name))
        self.w_ih_list = ParameterTuple(weights["weight_ih"])
        self.w_hh_list = ParameterTuple(weights["weight_hh"])
        self.b_ih_list = ParameterTuple(weights["bias_ih"])
        self.b_hh_list = ParameterTuple(weights["bias_hh"])

    def _layer(self, x, state, index, lengths):
        """One layer and direction over x [T, B, I]: (all h, last states as a tuple)."""
        raise errors.error(errors.NotSupportedError, type(self).__name__, "_layer() is not defined")

    def _weights(self, index: int) -> tuple:
        biases = (self.b_ih_list[index], self.b_hh_list[index]) if self.has_bias else (None, None)
        return (self.w_ih_list[index], self.w_hh_list[index], *biases)

    def _run_layers(self, x, states, lengths):
        """All layers; `states`: tuple of [layers * directions, B, H]."""
        last: list[tuple] = []
        for layer in range(self.num_layers):
            parts = []
            for direction in range(self._directions):
                index = layer * self._directions + direction
                own = tuple(s[index] for s in states)
                source = x
                if direction:
                    source = flip(x, (0,)) if lengths is None else _reverse_steps(x, lengths)
                y, final = self._layer(source, own, index, lengths)
                if direction:
                    y = flip(y, (0,)) if lengths is None else _reverse_steps(y, lengths)
                parts.append(y)
                last.append(final)
            x = parts[0] if len(parts) == 1 else concat(parts, 2)
            if self.dropout and self.training and layer < self.num_layers - 1:
                from mycelia.engine.ops.random.random import dropout

                x = dropout(x, self.dropout)
        return x, tuple(stack([f[k] for f in last]) for k in range(len(last[0])))

    def _prepare(self, x, hx, seq_length, count):
        owner = type(self).__name__
        if not isinstance(x, Tensor):
            raise errors.type_error(owner, f"x must be a Tensor, but got {type(x).__name__}")
        if x.ndim != 3 or x.shape[2] != self.input_size:
            order = "[batch, steps, input_size]" if self.batch_first else "[steps, batch, input_size]"
            raise errors.shape_error(
                owner,
                f"x must be {order} with input_size {self.input_size}, but its shape is {list(x.shape)}",
            )
        if self.batch_first:
            x = transpose(x, (1, 0, 2))
        expected = (self.num_layers * self._directions, x.shape[1], self.hidden_size)
        if hx is None:
            states = tuple(zeros(expected, x.dtype) for _ in range(count))
        else:
            states = (hx,) if isinstance(hx, Tensor) else tuple(hx)
            if len(states) != count or any(not isinstance(s, Tensor) or s.shape != expected for s in states):
                shapes = [list(s.shape) if isinstance(s, Tensor) else type(s).__name__ for s in states]
                raise errors.shape_error(
                    owner, f"hx must be {count} Tensor(s) of shape {list(expected)}, but got {shapes}"
                )
        if seq_length is not None:
            if not seq_length.dtype.is_integer or seq_length.shape != (x.shape[1],):
                raise errors.value_error(
                    owner, f"seq_length must be {x.shape[1]} ints, one per sequence, but got {seq_length!r}"
                )
            seq_length = seq_length.astype(dtypes.int64)
        return x, states, seq_length

    def _output(self, y):
        return transpose(y, (1, 0, 2)) if self.batch_first else y

    def extend_repr(self) -> str:
        """As MindSpore's prints, which has a cell for the loop and one for the dropout."""
        return f"(rnn): {self._loop_name()}()\n(dropout_op): Dropout(p={float(self.dropout)})"

    def _loop_name(self) -> str:
        return f"_Dynamic{type(self).__name__}CPUGPU"


class LSTM(_Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997).

    Shapes: x [T, B, input_size] ([B, T, ...] with batch_first),
    hx a pair of [layers * directions, B, hidden_size] -> output [T, B, directions * hidden_size], (h, c).
    `seq_length` [B]: real steps of each sequence.
    """

    _gates = 4

    def _layer(self, x, state, index, lengths):
        y, h, c, _, cells = _rnn._lstm_layer(x, *state, *self._weights(index))
        if lengths is None:
            return y, (h, c)
        return _blank_padding(y, lengths), (_at_last_step(y, lengths), _at_last_step(cells, lengths))

    def construct(self, x, hx=None, seq_length=None):
        x, states, lengths = self._prepare(x, hx, seq_length, 2)
        y, final = self._run_layers(x, states, lengths)
        return self._output(y), final


class GRU(_Recurrent):
    """Gated recurrent units (Cho et al. 2014).

    Shapes: x [T, B, input_size] ([B, T, ...] with batch_first), hx [layers * directions, B, hidden_size]
    -> output [T, B, directions * hidden_size], h.
    """

    _gates = 3

    def _layer(self, x, state, index, lengths):
        y, h, _ = _gru._gru_layer(x, *state, *self._weights(index))
        return (y, (h,)) if lengths is None else (_blank_padding(y, lengths), (_at_last_step(y, lengths),))

    def construct(self, x, hx=None, seq_length=None):
        x, states, lengths = self._prepare(x, hx, seq_length, 1)
        y, final = self._run_layers(x, states, lengths)
        return self._output(y), final[0]


class RNN(_Recurrent):
    """Elman network with `nonlinearity` 'tanh' or 'relu'.

    Shapes: x [T, B, input_size] ([B, T, ...] with batch_first), hx [layers * directions, B, hidden_size]
    -> output [T, B, directions * hidden_size], h.
    """

    def __init__(self, *args, nonlinearity: str = "tanh", **kwargs):
        super().__init__(*args, **kwargs)
        if nonlinearity not in ("tanh", "relu"):
            raise errors.one_of(nonlinearity, ["tanh", "relu"], subject="RNN", what="nonlinearity")
        self.nonlinearity = nonlinearity

    def _loop_name(self) -> str:
        return "_DynamicRNNTanh" if self.nonlinearity == "tanh" else "_DynamicRNNRelu"

    def _layer(self, x, state, index, lengths):
        y, h = _rnn._rnn_layer(x, *state, *self._weights(index), nonlinearity=self.nonlinearity)[:2]
        return (y, (h,)) if lengths is None else (_blank_padding(y, lengths), (_at_last_step(y, lengths),))

    def construct(self, x, hx=None, seq_length=None):
        x, states, lengths = self._prepare(x, hx, seq_length, 1)
        y, final = self._run_layers(x, states, lengths)
        return self._output(y), final[0]


class _CellBase(Cell):
    """One step of a recurrent layer."""

    _gates = 1

    def __init__(self, input_size, hidden_size, has_bias=True, dtype=float32):
        super().__init__()
        owner = type(self).__name__
        check_positive(owner, input_size=input_size, hidden_size=hidden_size)
        if not isinstance(has_bias, bool):
            raise errors.type_error(owner, f"has_bias must be a bool, but got {has_bias!r}")
        self.input_size, self.hidden_size, self.has_bias = input_size, hidden_size, has_bias
        rows, bound = self._gates * hidden_size, Uniform(1 / math.sqrt(hidden_size))
        self.weight_ih = Parameter(initializer(bound, (rows, input_size), dtype), name="weight_ih")
        self.weight_hh = Parameter(initializer(bound, (rows, hidden_size), dtype), name="weight_hh")
        self.bias_ih = Parameter(initializer(bound, (rows,), dtype), name="bias_ih") if has_bias else None
        self.bias_hh = Parameter(initializer(bound, (rows,), dtype), name="bias_hh") if has_bias else None

    def _weights(self) -> tuple:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check(self, x, *states) -> None:
        for name, value, size in (("x", x, self.input_size), *(("hx", s, self.hidden_size) for s in states)):
            if value.ndim != 2 or value.shape[1] != size:
                raise errors.shape_error(
                    type(self).__name__,
                    f"{name} must be [batch, {size}], but its shape is {list(value.shape)}",
                )


class RNNCell(_CellBase):
    """One Elman step. Shapes: x [B, input_size], hx [B, hidden_size] -> [B, hidden_size]."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        has_bias: bool = True,
        nonlinearity: str = "tanh",
        dtype=float32,
    ):
        super().__init__(input_size, hidden_size, has_bias, dtype)
        if nonlinearity not in ("tanh", "relu"):
            raise errors.one_of(nonlinearity, ["tanh", "relu"], subject="RNNCell", what="nonlinearity")
        self.nonlinearity = nonlinearity

    def construct(self, x, hx):
        self._check(x, hx)
        return _rnn._rnn_cell(x, hx, *self._weights(), nonlinearity=self.nonlinearity)


class LSTMCell(_CellBase):
    """One LSTM step. Shapes: x [B, input_size], hx a pair of [B, hidden_size] -> (h, c)."""

    _gates = 4

    def construct(self, x, hx):
        if not isinstance(hx, (tuple, list)) or len(hx) != 2:
            raise errors.type_error("LSTMCell", "hx must be a pair (h, c) of Tensors")
        self._check(x, *hx)
        return tuple(_rnn._lstm_cell(x, *hx, *self._weights()))


class GRUCell(_CellBase):
    """One GRU step. Shapes: x [B, input_size], hx [B, hidden_size] -> [B, hidden_size]."""

    _gates = 3

    def construct(self, x, hx):
        self._check(x, hx)
        return _gru._gru_cell(x, hx, *self._weights())
