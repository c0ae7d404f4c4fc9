"""Messages of one client look alike but for the numbers in their tensors: how to read the second one quickly.

A `Layout` is made of a message that protobuf has read and that passed every check. It remembers all bytes
but those of the tensors' data. A later message with the same bytes around the data has the same names, types,
shapes and lengths, so only the data are looked at. Messages with strings, or in any unusual form (a field
twice, fields that the schema does not know), have no layout; protobuf reads them each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mycelia_serving.wire.tensors import array

_MOST_ALIKE = 4  # layouts kept of messages of one length
_LARGEST_FRAME = 1 << 14  # bytes around the data worth comparing
_BUDGET = 8 << 20  # bytes that the layouts of one message type may take, so that no caller fills the memory
_SLOT_BYTES = 400


@dataclass(slots=True, frozen=True)
class Slot:
    """Where the data of a number tensor stand: instance, input, type, shape, first and last byte + 1."""

    instance: int
    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(slots=True, frozen=True)
class Layout:
    head: Any  # whatever the owner of the message reads of the rest
    count: int  # instances
    slots: tuple[Slot, ...]
    frame: tuple[tuple[int, int, bytes], ...]  # the bytes between the slots

    def instances(self, body: bytes) -> list[dict[str, np.ndarray]]:
        found = [{} for _ in range(self.count)]
        for slot in self.slots:
            # a slice, not a view: the copy is aligned, the message need not be
            found[slot.instance][slot.name] = array(slot.dtype, slot.shape, body[slot.start : slot.stop])
        return found


class Layouts:
    """The layouts of one message type. Threads may share it: entries are replaced whole."""

    def __init__(self, instances_field: int) -> None:
        self._field = instances_field
        self._by_length: dict[int, tuple[Layout, ...]] = {}
        self._size = 0

    def find(self, body: bytes) -> Layout | None:
        for layout in self._by_length.get(len(body), ()):
            for start, stop, text in layout.frame:
                if body[start:stop] != text:
                    break
            else:
                return layout
        return None

    def learn(self, body: bytes, head: Any, instances: list) -> None:
        """Keep the layout of `body`, which was read as `instances`, if it has one."""
        slots = _slots(body, self._field, instances)
        if slots is None:
            return
        frame, position = [], 0
        for slot in slots:
            frame.append((position, slot.start, body[position : slot.start]))
            position = slot.stop
        frame.append((position, len(body), body[position:]))
        size = sum(len(text) for *_, text in frame)
        if size > _LARGEST_FRAME:
            return
        size += _SLOT_BYTES * (len(slots) + 1)
        if self._size + size > _BUDGET:
            self._by_length, self._size = {}, 0
        self._size += size
        layout = Layout(head, len(instances), tuple(slots), tuple(frame))
        same = self._by_length.get(len(body), ())
        self._by_length[len(body)] = (layout, *same[: _MOST_ALIKE - 1])


def _slots(body: bytes, instances_field: int, instances: list) -> list[Slot] | None:
    """The data of all tensors, in the order of the bytes; None if the message is not in the plain form."""
    slots: list[Slot] = []
    names: list[set[str]] = []
    try:
        for field, start, stop in _fields(body, 0, len(body)):
            if field != instances_field:
                continue
            number = len(names)
            names.append(set())
            for item, entry, entry_stop in _fields(body, start, stop):
                parts = {part: (a, b) for part, a, b in _fields(body, entry, entry_stop, once=True)}
                if item != 1 or set(parts) != {1, 2}:
                    return None
                name = body[slice(*parts[1])].decode()
                value = instances[number][name]
                tensor = {part: (a, b) for part, a, b in _fields(body, *parts[2], once=True)}
                if name in names[-1] or type(value) is not np.ndarray or not set(tensor) <= {1, 2, 3}:
                    return None
                names[-1].add(name)
                a, b = tensor.get(3, (parts[2][1], parts[2][1]))
                if b - a != value.nbytes or (value.dtype != bool and body[a:b] != value.tobytes()):
                    return None
                slots.append(Slot(number, name, value.dtype, value.shape, a, b))
    except (ValueError, IndexError, KeyError, TypeError):
        return None
    return slots if [set(instance) for instance in instances] == names else None


def _fields(body: bytes, position: int, end: int, once: bool = False):
    """(number, first byte, last byte + 1) of each field; ValueError for what is not plain."""
    seen = set()
    while position < end:
        tag, position = _varint(body, position)
        field, kind = tag >> 3, tag & 7
        if once and field in seen:
            raise ValueError(field)
        seen.add(field)
        start = position
        if kind == 0:
            _, position = _varint(body, position)
        elif kind == 2:
            size, start = _varint(body, position)
            position = start + size
        else:
            raise ValueError(kind)
        if position > end:
            raise ValueError(position)
        yield field, start, position


def _varint(body: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = body[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
        shift += 7
