"""Changes of a `.ms` file that keep it a FlatBuffer: wrong indices, sizes, dtypes, operators, attributes.

What only reads the tables stops most changes of bytes; these go on to the checks behind it.
"""

from __future__ import annotations

import math
import random
import struct

from mycelia_lite.format import ENUMS, PRIMITIVES, TABLES, Table

SIZES = {1: (30, 32, 37), 2: (33, 38, 42), 4: (34, 39, 43), 8: (35, 40, 44)}  # dtypes by bytes of an element
_BYTES = {dtype: size for size, dtypes in SIZES.items() for dtype in dtypes}
_INTEGERS = (0, 1, -1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 64, 127, 128, 255, 1000, 1 << 16, 1 << 20, (1 << 31) - 1,
             -(1 << 31), 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 47) + 1,
             (1 << 62) + 1, (1 << 63) - 1, -(1 << 63))  # fmt: skip
_FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.5, 1e-30, 1e30, -1e30, math.inf, -math.inf, math.nan)
_ENOUGH = 1 << 16  # bytes of a constant that is made to fit its type


def change(root: Table, rng: random.Random) -> None:
    """One to four changes of the model in place."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not root.nodes or not root.allTensors:
            return
        rng.choice(_CHANGES)(root, rng)


def change_any(root: Table, rng: random.Random) -> None:
    """One to three fields of tables anywhere in a file of any schema."""
    tables = [root]
    for table in tables:
        for field, value in table.items():
            for below in value if field.is_vector and field.type != "ubyte" else (value,):
                if isinstance(below, Table) and len(tables) < 2000:
                    tables.append(below)
    for _ in range(rng.choice((1, 1, 2, 3))):
        _field(rng.choice(tables), rng)


def _integer(scalar: struct.Struct, rng: random.Random, near: int = 0) -> int:
    kind = scalar.format[-1]
    bits = 8 * scalar.size if kind != "?" else 1
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind in "bhiq" else (0, (1 << bits) - 1)
    value = rng.choice((rng.choice(_INTEGERS), near + rng.choice((-1, 1)), rng.randrange(8), near * 2))
    return min(max(value, low), high)


def _field(table: Table, rng: random.Random) -> None:
    """Another value of a field, set before or not."""
    fields = list(table.schema.tables[table.kind].fields.values())
    if not fields:
        return
    field = rng.choice(fields)
    old = getattr(table, field.name)
    if field.type in ("float", "double") and not field.is_vector:
        setattr(table, field.name, rng.choice(_FLOATS))
    elif field.scalar is not None and not field.is_vector:
        if field.enum is not None and rng.random() < 0.8:
            setattr(table, field.name, int(rng.choice(list(field.enum.values()))))
        elif field.type == "bool":
            setattr(table, field.name, not old)
        else:
            setattr(table, field.name, _integer(field.scalar, rng, int(old)))
    elif field.type == "ubyte":
        _bytes(table, field.name, rng)
    elif field.is_vector and field.scalar is not None:
        values = [v for v in old]
        number = (
            (lambda: rng.choice(_FLOATS)) if field.type == "float" else (lambda: _integer(field.scalar, rng))
        )
        how = rng.randrange(4)
        if how == 0 or not values:
            values.insert(rng.randrange(len(values) + 1), number())
        elif how == 1:
            del values[rng.randrange(len(values))]
        elif how == 2:
            at = rng.randrange(len(values))
            values[at] = number() if field.type == "float" else _integer(field.scalar, rng, int(values[at]))
        else:
            rng.shuffle(values)
        setattr(table, field.name, values)
    elif field.type == "string" and not field.is_vector:
        setattr(
            table,
            field.name,
            rng.choice(("", "x", "Loop", "State", "SetState", "require", old * 2, old[:-1])),
        )
    elif field.table is not None and not field.is_vector and isinstance(old, Table):
        _field(old, rng)
    elif field.is_vector and old and isinstance(old[0], Table):
        how = rng.randrange(3)
        if how == 0:
            old.append(rng.choice(old))
        elif how == 1:
            del old[rng.randrange(len(old))]
        else:
            _field(rng.choice(old), rng)


def _bytes(table: Table, name: str, rng: random.Random) -> None:
    data = bytearray(getattr(table, name))
    how = rng.randrange(4)
    if how == 0 or len(data) < 4:
        data += rng.randbytes(rng.choice((1, 4, 8)))
    elif how == 1:
        del data[rng.randrange(len(data)) :]
    else:
        width = rng.choice([w for w in (1, 4, 8) if w <= len(data)])
        at = rng.randrange(len(data) // width) * width
        number = rng.choice(_INTEGERS) % (1 << 8 * width)
        data[at : at + width] = number.to_bytes(width, "little")
    setattr(table, name, bytes(data))


def _fit(tensor: Table) -> None:
    """The data of a constant as long as its type says, so that the check of lengths lets it pass."""
    count = math.prod(tensor.dims)
    size = count * _BYTES.get(int(tensor.dataType), 1)
    if len(tensor.data) and 0 <= size <= _ENOUGH:
        data = bytes(tensor.data)
        tensor.data = (data * (size // len(data) + 1))[:size]


def _attribute(root, rng):
    primitive = rng.choice(root.nodes).primitive
    if primitive is not None:
        _field(primitive, rng)


def _custom(root, rng):
    customs = [n.primitive for n in root.nodes if n.primitive is not None and n.primitive.kind == "Custom"]
    if customs:
        table = rng.choice(customs)
        _field(rng.choice([table, *table.attr]), rng)


def _operator(root, rng):
    node = rng.choice(root.nodes)
    old, made = node.primitive, Table(rng.choice(PRIMITIVES[1:]))
    others = [n.primitive for n in root.nodes if n.primitive is not None]
    if others and rng.random() < 0.5:
        made = rng.choice(others).copy()
    elif old is not None:  # attributes of the same name stay
        for field, value in old.items():
            mine = TABLES[made.kind].fields.get(field.name)
            if mine is not None and (mine.type, mine.is_vector) == (field.type, field.is_vector):
                setattr(made, field.name, value)
    node.primitive = made


def _wire(root, rng):
    node = rng.choice(root.nodes)
    name = rng.choice(("inputIndex", "inputIndex", "outputIndex"))
    wires = [int(i) for i in getattr(node, name)]
    other = rng.choice(
        (
            rng.randrange(len(root.allTensors)),
            rng.randrange(len(root.allTensors)),
            len(root.allTensors),
            (1 << 32) - 1,
        )
    )
    how = rng.randrange(4)
    if how == 0 or not wires:
        wires.append(other)
    elif how == 1:
        del wires[rng.randrange(len(wires))]
    elif how == 2:
        rng.shuffle(wires)
    else:
        wires[rng.randrange(len(wires))] = other
    setattr(node, name, wires)


def _tensor(root, rng):
    tensor = rng.choice(root.allTensors)
    how = rng.randrange(4)
    if how == 0:
        tensor.dataType = rng.choice((*_BYTES, 0, 12, 17, 99))
    elif how == 1:
        dims = list(tensor.dims)
        small = rng.choice((0, 1, 2, 3, 7, -1, 1 << 16, (1 << 31) - 1))
        if dims and rng.random() < 0.7:
            dims[rng.randrange(len(dims))] = small
        else:
            dims.insert(rng.randrange(len(dims) + 1), small)
        tensor.dims = dims
    elif how == 2 and len(tensor.data):
        _bytes(tensor, "data", rng)
    else:
        dims = list(tensor.dims)
        rng.shuffle(dims)
        tensor.dims = dims
    if rng.random() < 0.9:
        _fit(tensor)


def _constant(root, rng):
    """Other numbers in a constant of few integers: shapes, axes, counts."""
    found = [t for t in root.allTensors if int(t.dataType) in (34, 35) and 0 < len(t.data) <= 128]
    if not found:
        return
    tensor = rng.choice(found)
    width, data = _BYTES[int(tensor.dataType)], bytearray(tensor.data)
    at = rng.randrange(len(data) // width) * width
    data[at : at + width] = (rng.choice(_INTEGERS) % (1 << 8 * width)).to_bytes(width, "little")
    tensor.data = bytes(data)


def _order(root, rng):
    a, b = rng.randrange(len(root.nodes)), rng.randrange(len(root.nodes))
    root.nodes[a], root.nodes[b] = root.nodes[b], root.nodes[a]


def _node(root, rng):
    if rng.random() < 0.5 and len(root.nodes) > 1:
        del root.nodes[rng.randrange(len(root.nodes))]
    else:
        node = rng.choice(root.nodes).copy()
        root.allTensors += [
            root.allTensors[int(i)].copy() for i in node.outputIndex if int(i) < len(root.allTensors)
        ]
        count = len(node.outputIndex)
        node.outputIndex = list(range(len(root.allTensors) - count, len(root.allTensors)))
        root.nodes.append(node)
        for graph in root.subGraph[:1]:
            graph.nodeIndices = [*graph.nodeIndices, len(root.nodes) - 1]


def _graph(root, rng):
    if root.subGraph:
        _field(rng.choice(root.subGraph), rng)


def _border(root, rng):
    _field(root, rng)


def _dtype_of_all(root, rng):
    """Another dtype of all tensors of one: what no single change brings to a kernel."""
    old = int(rng.choice(root.allTensors).dataType)
    new = rng.choice([*_BYTES])
    for tensor in root.allTensors:
        if int(tensor.dataType) == old:
            tensor.dataType = new
            _fit(tensor)


_CHANGES = (
    _attribute, _attribute, _attribute, _custom, _operator, _operator, _wire, _tensor, _tensor, _constant,
    _constant, _order, _node, _graph, _border, _dtype_of_all,
)  # fmt: skip
assert set(_BYTES) <= set(int(v) for v in ENUMS["DataType"].values())
