"""Places in an arena: nothing that lives at once overlaps but as kernels allow, and little is wasted."""

from __future__ import annotations

import random

import pytest

from mycelia_lite.micro.memory import FREE, Buffer, Piece, plan


def whole(size: int, *spans: tuple[int, int]) -> Buffer:
    """A buffer of which all is there in these spans of steps."""
    return Buffer(tuple(Piece(first, last, 0, size) for first, last in spans))


def random_buffer(chance: random.Random, step: int) -> Buffer:
    """A part of it lives from the step on, another one a while later, as of a whole that is made of parts."""
    begin = 8 * chance.choice((0, 0, 0, 3))
    last = step + chance.choice((1, 1, 1, 2, 7))
    pieces = [Piece(step, last, begin, begin + 8 * chance.randrange(1, 60))]
    if begin:
        pieces.append(Piece(step + chance.randrange(last - step + 1), last, 0, begin))
    return Buffer(tuple(pieces), chance.choice((1, 4, 8)))


@pytest.mark.parametrize("seed", range(20))
def test_random_lives(seed):
    chance = random.Random(seed)
    buffers, distances = [], {}
    for step in range(chance.randrange(2, 30)):
        buffers += [random_buffer(chance, step) for _ in range(chance.randrange(1, 3))]
    for o, out in enumerate(buffers):
        for i, given in enumerate(buffers):
            if i != o and given.pieces[0].last == out.pieces[0].first and chance.random() < 0.3:
                distances[o, i] = (out.pieces[0].first, 8 * chance.randrange(-2, 4))
    made = plan(buffers, distances)
    for x, a in enumerate(buffers):
        assert made.places[x] % a.alignment == 0
        for p, b in enumerate(buffers):
            for one in a.pieces if x < p else ():
                for other in b.pieces:
                    steps = set(range(max(one.first, other.first), min(one.last, other.last) + 1))
                    at, there = made.places[x], made.places[p]
                    if (
                        not steps
                        or at + one.end <= there + other.begin
                        or there + other.end <= at + one.begin
                    ):
                        continue
                    pairs = [((x, p), one, other, there - at), ((p, x), other, one, at - there)]
                    assert any(
                        k in distances
                        and steps == {distances[k][0]}
                        and out.first == given.last == distances[k][0]
                        and gap >= distances[k][1]
                        for k, out, given, gap in pairs
                    )
    assert max(p + b.bytes for p, b in zip(made.places, buffers)) <= made.arena_bytes
    assert made.least_bytes <= made.arena_bytes <= 1.4 * made.live_bytes + 64


def test_a_chain_of_results_in_place_takes_the_largest():
    buffers = [whole(800, (0, 1)), whole(800, (1, 2)), whole(400, (2, 3))]
    assert plan(buffers, {(1, 0): (1, 0), (2, 1): (2, 0)}).arena_bytes == 800
    assert plan(buffers, {}).arena_bytes == 1600
    assert plan(buffers, {(1, 0): (1, 80), (2, 1): (2, 0)}).arena_bytes == 880


def test_what_lives_in_parts_leaves_its_place_between_them():
    kept = whole(800, (0, 0), (5, 6))
    assert plan([kept, whole(800, (2, 4))], {}).arena_bytes == 800
    window = whole(880, (0, 5))
    assert plan([kept, window], {(1, 0): (0, FREE), (0, 1): (5, FREE)}).arena_bytes == 880


def test_the_part_of_a_whole_that_is_not_made_yet_is_free():
    joined = Buffer((Piece(0, 5, 0, 400), Piece(4, 5, 400, 800)))
    assert plan([joined, whole(400, (1, 3))], {}).arena_bytes == 800


def test_bytes_lie_where_bytes_end():
    bytes_ = [Buffer((Piece(0, 1, 0, 3),), 1) for _ in range(8)]
    assert plan(bytes_, {}).arena_bytes == 24
