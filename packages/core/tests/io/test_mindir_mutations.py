"""Damaged and changed MindIR files load and run, or are refused by the one error that says where and what.

Mutations of bytes (flipped, cut, inserted) and of messages (fields changed, elements dropped, doubled,
exchanged, texts exchanged), the same in every run; tools/fuzz.py tries others, with a limit on the time and
memory of each.
"""

import contextlib
import os
import pathlib
import random
import signal
import tracemalloc

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, errors, nn
from mycelia.io.mindir import mindir_pb2 as pb

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures/formats"
MODELS = [
    FIXTURES / "mindir/add_2x2/model.mindir",
    FIXTURES / "mindir/open_sizes/model.mindir",
    FIXTURES / "mindir/control_flow/model.mindir",
    FIXTURES / "mindir/embedding/model.mindir",
    FIXTURES / "mindir/encoder_layer/model.mindir",
    FIXTURES / "mindir/resblock/model.mindir",
    FIXTURES / "operators/shapes.mindir",
    FIXTURES / "operators/indexing.mindir",
]
MORE = "MYCELIA_FUZZ" in os.environ
PART = 25  # mutations of one test
SECONDS, MEMORY = 20, 64  # of one mutation; times the size of the file
BUILTIN = (ValueError, TypeError, IndexError, KeyError, AttributeError)


def changed_bytes(data, rng):
    kind = rng.randrange(4)
    at = rng.randrange(len(data))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + rng.randbytes(rng.randint(1, 8)) + data[at:]
    if kind == 2:
        return data[:at] + data[at + rng.randint(1, 64) :]
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def in_old_form(data):
    """The values of constants as 1.x wrote them: flat, with their structure as a text."""
    model = pb.ModelProto.FromString(data)
    for graph in (model.graph, *model.functions):
        for node in graph.node:
            if node.op_type == "Constant":
                to_old_form(node.attribute[0])
    return model.SerializeToString()


def to_old_form(value):
    kind = pb.AttributeProto
    if value.type == kind.INT64:
        value.ref_attr_name = "scalar:value0"
    elif value.type == kind.TUPLE and all(v.type == kind.INT64 for v in value.values):
        numbers = [v.ints[0] for v in value.values]
        value.ref_attr_name = f"scalar:Tuple[{''.join(f'value{i},' for i in range(1, len(numbers) + 1))}],"
        value.type = kind.INT64
        value.ints.extend(numbers)
        del value.values[:]


def messages_in(message, found):
    """All messages inside, but not those of what the framework ignores."""
    found.append(message)
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for inner in value if field.is_repeated else [value]:
                messages_in(inner, found)
    return found


def changed_message(data, rng):
    model = pb.ModelProto.FromString(data)
    found = messages_in(model, [])
    texts = [m.name for m in found if m.DESCRIPTOR.name in ("NodeProto", "GraphProto", "PrimitiveProto")]
    for _ in range(rng.randint(1, 2)):
        message = rng.choice(found)
        fields = [f for f in message.DESCRIPTOR.fields if f.name not in ("user_info", "quant_params")]
        present = [field for field, _ in message.ListFields() if field.name != "user_info"]
        field = rng.choice(present if present and rng.random() < 0.9 else fields)
        if field.is_repeated:
            change_repeated(getattr(message, field.name), field, texts, rng)
        elif rng.random() < 0.2 or field.message_type is not None:
            message.ClearField(field.name)
        else:
            setattr(message, field.name, scalar(field, texts, rng))
    return model.SerializePartialToString()


def change_repeated(values, field, texts, rng):
    kind = rng.randrange(4)
    if kind == 0 and len(values):
        del values[rng.randrange(len(values))]
    elif kind == 1 and len(values):
        items = list(values)
        items.insert(rng.randrange(len(items)), rng.choice(items))
        replace(values, items)
    elif kind == 2 and len(values) > 1:
        items = list(values)
        rng.shuffle(items)
        replace(values, items)
    elif field.message_type is None:
        value = scalar(field, texts, rng)
        if len(values) and rng.random() < 0.7:
            values[rng.randrange(len(values))] = value
        else:
            values.append(value)
    else:
        values.add()


def replace(values, items):
    if hasattr(items[0], "CopyFrom"):
        copies = [type(item).FromString(item.SerializePartialToString()) for item in items]
        del values[:]
        values.extend(copies)
    else:
        values[:] = items


def scalar(field, texts, rng):
    if field.enum_type is not None:
        return rng.choice(field.enum_type.values).number
    kind = field.cpp_type
    if kind == field.CPPTYPE_BOOL:
        return rng.random() < 0.5
    if kind == field.CPPTYPE_STRING:
        text = rng.choice((rng.choice(texts), "", "no such name", "REF::" + rng.choice(texts)))
        return text.encode() if field.type == field.TYPE_BYTES else text
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice((0.0, -1.0, 1e30, float("nan")))
    if kind == field.CPPTYPE_UINT64:
        return rng.choice((0, 1, 7))
    return rng.choice((0, 1, 2, -1, -2, 7, 255, 43, -(1 << 31), (1 << 31) - 1))


@contextlib.contextmanager
def limits(path):
    """A limit on time and memory, for the long run: a test looks at no clock."""
    if not MORE:
        yield
        return

    def stop(*_):
        raise TimeoutError(f"{path} takes more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert peak < (8 << 20) + MEMORY * os.path.getsize(path), f"{path} takes {peak} bytes"


def check(path):
    with limits(path):
        try:
            graph = ms.load(str(path))
        except errors.FileFormatError as error:
            assert str(path) in str(error)
            return
    if graph.has_branches or any(len(shape) > 6 or max((*shape, 0)) > 64 for _, _, shape in graph.inputs):
        return  # a changed loop may run for ever, a changed size take any memory
    inputs = [
        Tensor(np.ones([max(n, 2 if n < 0 else 0) for n in shape]), dtype) for _, dtype, shape in graph.inputs
    ]
    with limits(path):
        try:
            nn.GraphCell(graph)(*inputs)
        except BUILTIN as error:
            assert isinstance(error, errors.MyceliaError) or "input" in str(error), repr(error)
        except (errors.MyceliaError, NotImplementedError):
            pass


@pytest.mark.filterwarnings("ignore")
@pytest.mark.fuzz(24)
def test_mutations_load_or_are_refused(tmp_path, seed):
    for number in range(seed * PART, (seed + 1) * PART):
        rng = random.Random(number)
        model = rng.choice(MODELS)
        data = model.read_bytes()
        if rng.random() < 0.25:
            data = in_old_form(data)
        change = changed_bytes if rng.random() < 0.4 else changed_message
        path = tmp_path / f"mutation_{number}.mindir"
        path.write_bytes(change(data, rng))
        try:
            check(path)
        except BaseException as error:
            error.add_note(f"mutation {number} of {model.parent.name}/{model.name}")
            raise
        path.unlink()
