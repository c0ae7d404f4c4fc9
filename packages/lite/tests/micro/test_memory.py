"""Places in an arena: nothing that lives at once overlaps but as kernels allow, and little is wasted."""

from __future__ import annotations

import random

import pytest

from mycelia_lite.micro.memory import FREE, Buffer, plan


def overlaps(a: int, b: int, size: int, other: int) -> bool:
    return a < b + other and b < a + size


@pytest.mark.parametrize("seed", range(20))
def test_random_lives(seed):
    chance = random.Random(seed)
    buffers, distances = [], {}
    for step in range(chance.randrange(2, 30)):
        for _ in range(chance.randrange(1, 3)):
            buffers.append(
                Buffer(8 * chance.randrange(1, 60), ((step, step + chance.choice((1, 1, 1, 2, 7))),))
            )
    for o, out in enumerate(buffers):
        for i, given in enumerate(buffers):
            if i != o and given.spans[0][1] == out.spans[0][0] and chance.random() < 0.3:
                distances[o, i] = (out.spans[0][0], 8 * chance.randrange(0, 4))
    made = plan(buffers, distances)
    for x, a in enumerate(buffers):
        for p, b in enumerate(buffers):
            if x >= p or not a.meets(b):
                continue
            at, other = made.places[x], made.places[p]
            if not overlaps(at, other, a.bytes, b.bytes):
                continue
            pairs = [(k, gap) for k, gap in (((x, p), other - at), ((p, x), at - other)) if k in distances]
            assert a.meets(b) <= {distances[k][0] for k, _ in pairs}
            assert any(gap >= distances[k][1] for k, gap in pairs)
    assert max(p + b.bytes for p, b in zip(made.places, buffers)) <= made.arena_bytes
    assert made.least_bytes <= made.arena_bytes <= 1.3 * made.live_bytes


def test_a_chain_of_results_in_place_takes_the_largest():
    buffers = [Buffer(800, ((0, 1),)), Buffer(800, ((1, 2),)), Buffer(400, ((2, 3),))]
    assert plan(buffers, {(1, 0): (1, 0), (2, 1): (2, 0)}).arena_bytes == 800
    assert plan(buffers, {}).arena_bytes == 1600
    assert plan(buffers, {(1, 0): (1, 80), (2, 1): (2, 0)}).arena_bytes == 880


def test_what_lives_in_parts_leaves_its_place_between_them():
    kept = Buffer(800, ((0, 0), (5, 6)))
    assert plan([kept, Buffer(800, ((2, 4),))], {}).arena_bytes == 800
    window = Buffer(880, ((0, 5),))
    assert plan([kept, window], {(1, 0): (0, FREE), (0, 1): (5, FREE)}).arena_bytes == 880
