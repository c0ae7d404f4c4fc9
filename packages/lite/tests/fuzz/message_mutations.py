"""Changes of protobuf messages (ONNX, Caffe, MindIR): other numbers, names and operators; parts left out."""

from __future__ import annotations

import math
import random

_INTEGERS = (0, 1, -1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 16, 17, 100, 127, 1 << 16, 1 << 20, (1 << 31) - 1,
             -(1 << 31), 1 << 40, (1 << 62) + 1, (1 << 63) - 1, -(1 << 63))  # fmt: skip
_FLOATS = (0.0, 1.0, -1.0, 0.5, 1e-30, 3e38, -3e38, math.inf, math.nan)


def change(root, rng: random.Random) -> None:
    """One to three changes of the message in place."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        messages = _messages(root)
        _change(rng.choice(messages), messages, rng)


def _messages(root) -> list:
    found = [root]
    for message in found:
        for field, value in message.ListFields():
            if field.message_type is None or len(found) >= 3000:
                continue
            if field.message_type.GetOptions().map_entry:
                found += [v for v in value.values() if hasattr(v, "DESCRIPTOR")]
            else:
                many = not hasattr(value, "DESCRIPTOR")
                found += value if many else [value]
    return found


def _number(field, rng: random.Random, near=0):
    kind = field.cpp_type
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice(_FLOATS)
    if kind == field.CPPTYPE_BOOL:
        return not near
    if kind == field.CPPTYPE_ENUM:
        return rng.choice([v.number for v in field.enum_type.values])
    low, high = {
        field.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
        field.CPPTYPE_UINT32: (0, (1 << 32) - 1),
        field.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
        field.CPPTYPE_UINT64: (0, (1 << 64) - 1),
    }[kind]
    return min(max(rng.choice((rng.choice(_INTEGERS), near + rng.choice((-1, 1)), near * 2)), low), high)


def _text(field, messages, rng: random.Random, old):
    if field.type == field.TYPE_BYTES:
        data = bytearray(old or b"")
        if not data or rng.random() < 0.3:
            return bytes(data) + rng.randbytes(rng.choice((1, 4, 8)))
        if rng.random() < 0.3:
            return bytes(data[: rng.randrange(len(data))])
        data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255))
        return bytes(data)
    others = [  # names and operators of the same model
        getattr(m, f.name)
        for m in rng.sample(messages, min(len(messages), 20))
        for f, _ in m.ListFields()
        if f.type == f.TYPE_STRING and isinstance(getattr(m, f.name), str)
    ]
    return rng.choice(["", "nowhere", (old or "x") + "_", *others])


def _value(field, messages, rng: random.Random, old):
    if field.cpp_type == field.CPPTYPE_STRING:
        return _text(field, messages, rng, old)
    return _number(field, rng, old or 0)


def _change(message, messages, rng: random.Random) -> None:
    here = [f for f, _ in message.ListFields()]
    fields = here if here and rng.random() < 0.85 else list(message.DESCRIPTOR.fields)
    if not fields:
        return
    field = rng.choice(fields)
    value = getattr(message, field.name)
    repeated = not isinstance(value, (str, bytes, int, float)) and not hasattr(value, "DESCRIPTOR")
    if rng.random() < 0.08:
        message.ClearField(field.name)
    elif field.message_type is not None and field.message_type.GetOptions().map_entry:
        message.ClearField(field.name)
    elif repeated and len(value):
        at, how = rng.randrange(len(value)), rng.randrange(4)
        if how == 0:
            del value[at]
        elif how == 1:
            value.extend([value[at]])
        elif field.message_type is not None:
            other = rng.choice([m for m in messages if m.DESCRIPTOR is value[at].DESCRIPTOR])
            copy = type(other)()
            copy.CopyFrom(other)
            value[at].CopyFrom(copy)
        else:
            value[at] = _value(field, messages, rng, value[at])
    elif repeated:
        if field.message_type is None:
            value.append(_value(field, messages, rng, None))
        else:
            value.add()
    elif field.message_type is not None:
        like = [m for m in messages if m.DESCRIPTOR is field.message_type and m is not value]
        if like:
            copy = type(like[0])()
            copy.CopyFrom(rng.choice(like))
            if copy.ByteSize() < 100_000:
                getattr(message, field.name).CopyFrom(copy)
        else:
            value.SetInParent()
    else:
        setattr(message, field.name, _value(field, messages, rng, value))
