"""Bad input: each error names the op or argument, what came, what was expected and the
user's line; nothing breaks.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, errors, nn, ops
from mycelia.engine import _C


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def ints(*values) -> Tensor:
    return Tensor(np.array(values, np.int32))


X = ones(2, 3)
I = ints(1, 0, 2)
EMPTY = ones(0, 3)
NET = nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 3))


def assign(key, value):
    x = ones(2, 3)
    x[key] = value


# (what is called, the class users catch, what the message must hold). All of them name this file.
PLACED = {
    # construction
    "Tensor()": (lambda: Tensor(), TypeError, "Tensor: without input_data, dtype must be given"),
    "ragged list": (
        lambda: Tensor([[1, 2], [3]]),
        TypeError,
        "Tensor: input_data must be a regular nested list",
    ),
    "text": (lambda: Tensor("abc"), TypeError, "Tensor: input_data must be .* but got str"),
    "object": (lambda: Tensor(object()), TypeError, "Tensor: input_data .* got object"),
    "object array": (lambda: Tensor(np.array([None])), TypeError, "Tensor: input_data .* dtype is object"),
    "dates": (lambda: Tensor(np.array(["2020-01-01"], "M8[D]")), TypeError, r"datetime64\[D\]"),
    "foreign byte order": (lambda: Tensor(np.array([1], ">i4")), TypeError, "Tensor: .*>i4"),
    "unknown keyword": (lambda: Tensor([1], foo=1), TypeError, "Tensor: .*'foo'"),
    "unknown dtype": (lambda: Tensor([1], "float99"), TypeError, "Tensor: dtype must be .* 'float99'"),
    "too large int": (
        lambda: Tensor(2**70),
        RuntimeError,
        "Tensor: input_data 1180591620717411303424 does not fit",
    ),
    "rank 9": (lambda: Tensor(np.zeros((1,) * 9)), ValueError, "at most 8 dimensions, but the array has 9"),
    "from_numpy list": (
        lambda: Tensor.from_numpy([1]),
        TypeError,
        "Tensor.from_numpy: array must be .* got list",
    ),
    "negative size": (lambda: ops.zeros((-1, 2)), ValueError, r"negative sizes, but got \(-1, 2\)"),
    "parameter of None": (lambda: Parameter(None), TypeError, "Parameter: default_input .* None"),
    # as a Python value
    "bool": (lambda: bool(X), ValueError, r"Tensor: .*ambiguous.*\(2, 3\)"),
    "float": (lambda: float(X), ValueError, r"Tensor: float\(\) needs .* shape is \(2, 3\)"),
    "int": (lambda: int(X), ValueError, r"Tensor: int\(\) needs"),
    "item": (lambda: X.item(), ValueError, r"Tensor: item\(\) needs"),
    "list index": (
        lambda: [1, 2][X],
        ValueError,
        "Tensor: only an integer or bool tensor .* dtype is Float32",
    ),
    # indexing
    "index": (
        lambda: X[5],
        IndexError,
        r"Tensor.__getitem__: index 5 is out of bounds for axis 0 with size 2",
    ),
    "too many indices": (
        lambda: X[0, 0, 0],
        IndexError,
        "__getitem__: too many indices: the tensor has 2 axes",
    ),
    "text index": (lambda: X["a"], IndexError, "__getitem__: only integers.* got 'a' of type str"),
    "float index": (lambda: X[1.5], IndexError, "__getitem__: .*got 1.5 of type float"),
    "step 0": (lambda: X[::0], ValueError, "__getitem__: the step .* on axis 0 cannot be 0"),
    "index tensor": (
        lambda: X[Tensor([5])],
        IndexError,
        "gather: index 5 is out of bounds for axis 0 with size 2",
    ),
    "index list": (lambda: X[[-9]], IndexError, "index -9 is out of bounds"),
    "float index tensor": (lambda: X[X], IndexError, "__getitem__: .*integer or bool type, but got Float32"),
    "mask shape": (lambda: X[Tensor([True])], IndexError, "__getitem__: a mask of shape"),
    "assign shape": (
        lambda: assign(0, np.ones(4)),
        ValueError,
        r"__setitem__: a value of shape \(4,\) .* \(3,\)",
    ),
    "assign text": (lambda: assign(0, "a"), TypeError, "__setitem__: .* got str"),
    "assign out of range": (lambda: assign(7, 1.0), IndexError, "__setitem__: index 7 is out of bounds"),
    "assign at tensor": (lambda: assign(Tensor([5]), 1.0), IndexError, "index 5 is out of bounds"),
    "assign nan to int": (lambda: ints(1, 2).__setitem__(0, float("nan")), ValueError, "__setitem__: .*NaN"),
    "delete": (lambda: X.__delitem__(0), TypeError, "Tensor.__delitem__"),
    # ops
    "broadcast": (lambda: X + ones(4), ValueError, r"add: shapes \[2, 3\] and \[4\] cannot be broadcast"),
    "matmul": (lambda: ops.matmul(X, X), ValueError, r"inner sizes differ: x is \[2, 3\], y is \[2, 3\]"),
    "softmax axis": (
        lambda: ops.softmax(X, 5),
        ValueError,
        r"softmax: axis 5 is out of range for shape \(2, 3\)",
    ),
    "axis of another type": (
        lambda: ops.softmax(X, "a"),
        TypeError,
        "softmax: argument 'axis' must be an int, but got 'a'",
    ),
    "reduce axis": (lambda: X.sum(3), ValueError, r"sum: 'axis' must be in the range \[-2, 2\), but got 3"),
    "axis twice": (lambda: X.sum((0, 0)), ValueError, r"sum: .*twice, but got \(0, 0\)"),
    "reshape": (lambda: X.reshape(4, 2), ValueError, r"reshape: shape \(4, 2\) .* \(2, 3\) with 6 elements"),
    "reshape -1 -1": (lambda: X.reshape(-1, -1), ValueError, "reshape: only one size"),
    "transpose": (lambda: ops.transpose(X, (0, 0)), ValueError, "transpose: .*twice"),
    "concat": (lambda: ops.concat([X, ones(2, 4)], 0), ValueError, r"concat: .*\(2, 3\) and \(2, 4\)"),
    "concat of nothing": (lambda: ops.concat([]), ValueError, "at least one tensor"),
    "concat of a tensor": (lambda: ops.concat(X), TypeError, "list of tensors, but got Tensor"),
    "stack dtypes": (
        lambda: ops.stack([X, ones(2, 3).astype(ms.int32)]),
        TypeError,
        "stack: .*float32 and int32",
    ),
    "split": (lambda: ops.split(X, [1, 1], 1), ValueError, "split.*must be equal to 3, but got"),
    "pad mode": (lambda: ops.pad(X, (1, 1), "foo"), ValueError, "pad.*'foo'"),
    "max of nothing": (lambda: EMPTY.max(), ValueError, r"max: an axis of extent 0 .* \[0, 3\]"),
    "argmax of nothing": (lambda: ops.argmax(EMPTY, 0), ValueError, "argmax: an axis of extent 0"),
    "conv channels": (
        lambda: nn.Conv2d(3, 4, 3)(ones(1, 5, 8, 8)),
        ValueError,
        "conv: input channels 5 .* 3",
    ),
    "label range": (lambda: nn.CrossEntropyLoss()(X, ints(0, 7)), ValueError, r"label 7 is not in \[0, 3\)"),
    "label count": (
        lambda: nn.CrossEntropyLoss()(X, I),
        ValueError,
        r"cross_entropy: target must have shape \(2,\)",
    ),
    "loss shapes": (lambda: nn.BCELoss()(X, ones(3, 5)), ValueError, r"\(2, 3\) and \(3, 5\)"),
    "integers to layer norm": (
        lambda: nn.LayerNorm((3,))(ops.ones((2, 3), ms.int32)),
        TypeError,
        "layer_norm: .*int32",
    ),
    "bool pooling": (
        lambda: nn.MaxPool2d(2)(Tensor(np.ones((1, 1, 4, 4), bool))),
        TypeError,
        "max_pool: .*bool",
    ),
    # layers
    "layer of size 0": (lambda: nn.Dense(0, 3), ValueError, "Dense: in_channels must be positive, but got 0"),
    "layer of text": (lambda: nn.Dense("a", 3), TypeError, "Dense: in_channels must be an int, but got 'a'"),
    "pad_mode": (
        lambda: nn.Conv2d(3, 4, 3, pad_mode="foo"),
        ValueError,
        "Conv2d: pad_mode must be one of .* 'foo'",
    ),
    "group": (
        lambda: nn.Conv2d(3, 4, 3, group=2),
        ValueError,
        "Conv2d: in_channels 3 and out_channels 4 .* group 2",
    ),
    "dropout rate": (lambda: nn.Dropout(p=1.5), ValueError, r"Dropout: p must be in \[0, 1\), but got 1.5"),
    "initializer": (lambda: nn.Dense(3, 3, weight_init="foo"), ValueError, "init must be one of .*'foo'"),
    "initial value": (lambda: nn.Dense(3, 3, weight_init=ones(4, 4)), ValueError, r"init has shape \[4, 4\]"),
    "features": (
        lambda: nn.Dense(4, 3)(X),
        ValueError,
        r"dense: x has 3 input features, w has 4: \[2, 3\] and \[3, 4\]",
    ),
    "rank": (
        lambda: nn.BatchNorm2d(3)(X),
        ValueError,
        r"BatchNorm2d: x must have rank 4, but its shape is \[2, 3\]",
    ),
    "layer called with text": (
        lambda: nn.Conv2d(3, 4, 3)("a"),
        TypeError,
        "Conv2d: argument 'x' must be a Tensor, but got str",
    ),
    "sequence features": (
        lambda: nn.LSTM(4, 5)(ones(3, 2, 6)),
        ValueError,
        r"LSTM: .* 4, but its shape is \[3, 2, 6\]",
    ),
    "embedding range": (
        lambda: nn.Embedding(5, 4)(ints(7)),
        IndexError,
        "embedding: index 7 is out of bounds .* 5",
    ),
    "embedding of floats": (
        lambda: nn.Embedding(5, 4)(X),
        TypeError,
        "embedding: input must hold integers, but got float32",
    ),
    "parameter overwritten": (
        lambda: setattr(nn.Dense(3, 3), "weight", 3),
        TypeError,
        "Dense: attribute 'weight'",
    ),
    # gradients and optimizers
    "grad of no function": (lambda: ms.grad(3), TypeError, "fn must be callable, but got int"),
    "grad position": (lambda: ms.grad(lambda x: x, 5)(X), RuntimeError, "grad_position 5 is out of range"),
    "no parameters": (lambda: nn.Adam([], 0.1), ValueError, "Adam: params must not be empty"),
    "tensors as parameters": (lambda: nn.Adam([X], 0.1), TypeError, "Adam: params must hold Parameters"),
    "negative rate": (
        lambda: nn.Momentum(NET.trainable_params(), -1, 0.9),
        ValueError,
        "Momentum: learning_rate .* -1",
    ),
    "gradient count": (
        lambda: nn.SGD(NET.trainable_params())((X,)),
        ValueError,
        "SGD: 4 gradients .* but got 1",
    ),
    "gradient shape": (
        lambda: nn.SGD([Parameter(X, name="w")])((ones(3),)),
        ValueError,
        r"\(2, 3\) and \(3,\)",
    ),
    # settings
    "unknown setting": (lambda: ms.set_context(foo=1), ValueError, "set_context: .*'foo'"),
    "mode": (lambda: ms.set_context(mode=7), ValueError, "set_context: .*'mode'.*7"),
    "device": (
        lambda: ms.set_context(device_target="TPU"),
        ValueError,
        "set_context: .*'device_target'.*'TPU'",
    ),
    "seed": (lambda: ms.set_seed("a"), TypeError, "set_seed: .*got str"),
}


@pytest.mark.parametrize("name", PLACED)
def test_error_names_subject_values_and_the_users_line(name):
    call, kind, pattern = PLACED[name]
    with pytest.raises(kind, match=pattern) as caught:
        call()
    assert isinstance(caught.value, errors.MyceliaError)
    assert re.match(r"MYC-[A-Z]+ ", str(caught.value))
    assert "test_bad_input.py:" in str(caught.value)
    assert (_C.tape_level(), _C.mode()) == (0, 0)


# The interpreter or the native call itself refuses these: the user's line is the last one of the traceback.
REFUSED = {
    "keyword of an op": (lambda: ops.softmax(X, foo=1), TypeError, r"softmax.*'foo'"),
    "missing argument of an op": (lambda: ops.softmax(), TypeError, r"softmax.*missing.*'input'"),
    "too many arguments": (lambda: ops.softmax(X, 1, 2, 3, 4, 5, 6), TypeError, "softmax.*takes"),
    "text to an op": (
        lambda: ops.softmax("a"),
        TypeError,
        "softmax: argument 'input' must be a Tensor .* got str",
    ),
    "None to an op": (
        lambda: ops.relu(None),
        TypeError,
        "relu: argument 'input' must be a Tensor .* got NoneType",
    ),
    "tensor of fractions as attribute": (
        lambda: ops.softmax(X, axis=Tensor(0.5)),
        TypeError,
        "softmax.*'axis' must be .* got 0.5",
    ),
    "operand": (lambda: X + "a", TypeError, "Tensor.*str"),
    "operand None": (lambda: X + None, TypeError, "Tensor.*NoneType"),
    "attribute": (lambda: X.foo, AttributeError, "Tensor.*'foo'"),
    "attribute of ops": (lambda: ops.foo, AttributeError, "'foo'"),
    "attribute of nn": (lambda: nn.Dens, AttributeError, "'Dens'"),
    "attribute of a cell": (lambda: NET.foo, AttributeError, "SequentialCell.*'foo'"),
    "argument of a layer": (lambda: nn.Dense(3, 3, foo=1), TypeError, "Dense.*'foo'"),
    "missing argument of a layer": (lambda: nn.Dense(3, 3)(), TypeError, "Dense.*missing.*'x'"),
    "surplus argument of a layer": (lambda: nn.Dense(3, 3)(X, X), TypeError, "Dense.*takes"),
    "len of a number": (lambda: len(Tensor(1.0)), TypeError, "0-d"),
    "iteration over a number": (lambda: list(Tensor(1.0)), TypeError, "scalar"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_calls_name_function_and_argument(name):
    call, kind, pattern = REFUSED[name]
    with pytest.raises(kind, match=pattern):
        call()
