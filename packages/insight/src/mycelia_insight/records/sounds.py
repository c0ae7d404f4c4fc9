"""Sounds of TensorBoard: WAVE files in messages."""

from __future__ import annotations

from mycelia_insight.records.tensors import strings
from mycelia_insight.records.wire import BYTES, NARROW, Broken, fields

MEDIA_TYPE = "audio/wav"


def decode(message: bytes, sample: int = 0) -> tuple[bytes, int]:
    """A sound of a batch, and how many there are.  Errors: Broken; IndexError: no such sample."""
    first = next(fields(message), None)
    if first is None or (first[0] == 1 and first[1] == NARROW):  # a Summary.Audio begins with its rate
        found = [bytes(value) for number, kind, value in fields(message) if number == 4 and kind == BYTES]
    else:
        shape, elements = strings(message)
        found = elements[:: shape[-1] or 1] if len(shape) > 1 else elements  # rows of sound and label
    if not 0 <= sample < len(found):
        raise IndexError(f"there are {len(found)} sounds, got the index {sample}")
    data = found[sample]
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise Broken("the sound is no WAVE file")
    return data, len(found)
