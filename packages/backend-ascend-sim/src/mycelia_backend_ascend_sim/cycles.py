"""A model of how many cycles a task takes on a chip: not a measurement, and not the device's compiler.

Products of matrices are cut into tiles of baseM x baseN, whose inner axis goes through the buffers L0A and
L0B in steps of baseK; sizes are multiples of 16. All buffers are used twice in turn, so that the pipes of a
core overlap: a tile takes as long as its slowest pipe. A core adds the time to fill the pipes before its
first tile and to empty them behind its last. Tiles are spread over cores. Of all tilings that fit, the
fastest is taken. Conversions between layouts are not counted.

======= ===================================================================================
pipe    what it does
======= ===================================================================================
mac     the cube: 16 x 16 x 16 products a cycle
vec     vector instructions, and what leaves the accumulators
scalar  issues instructions
mte1    L1 to L0A and L0B
mte2    memory to L1 or UB
mte3    UB to memory
======= ===================================================================================
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from mycelia.backends import Buffer
from mycelia.io.device_formats import c0_of
from mycelia.ir import TensorType
from mycelia.ops import cost
from mycelia.ops.define import find
from mycelia_backend_ascend_sim.chip import Chip
from mycelia_backend_ascend_sim.kernels import attention, cube
from mycelia_backend_ascend_sim.tasks import MTE, SCALAR, Task

PIPES = ("mac", "vec", "scalar", "mte1", "mte2", "mte3")
_ALIGNED = 16
_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # tiles in multiples of 16


@dataclass(frozen=True, slots=True)
class Tile:
    """How a product is cut: sizes of a tile, steps of its inner axis, tiles in all."""

    base_m: int
    base_n: int
    base_k: int
    count: int


@dataclass(frozen=True, slots=True)
class Cycles:
    """What a task takes: cycles in all, cores that work, busy cycles of each pipe of the busiest core."""

    total: int
    cores: int
    busy: dict[str, int]
    tile: Tile | None = None

    def ratio(self, pipe: str) -> float:
        """The share of the task's time in which the pipe works."""
        return self.busy[pipe] / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Product:
    """`count` products [m, k] x [k, n] of elements of `size` bytes, results of `out_size` bytes."""

    m: int
    n: int
    k: int
    count: int
    size: int
    out_size: int


def _up(n: int, to: int = _ALIGNED) -> int:
    return -(-n // to) * to


def _tilings(product: Product, chip: Chip) -> Iterator[Tile]:
    """All that fit into the buffers, each of which holds two."""
    m, n, k = _up(product.m), _up(product.n), _up(product.k)
    sizes = [s * _ALIGNED for s in _SIZES]
    for base_m, base_n in itertools.product(
        [s for s in sizes if s <= m] or [_ALIGNED], [s for s in sizes if s <= n] or [_ALIGNED]
    ):
        if 2 * base_m * base_n * 4 > chip.l0c or 2 * base_m * base_n * product.out_size > chip.ub:
            continue
        longest = min(
            chip.l0a // (2 * base_m * product.size),
            chip.l0b // (2 * base_n * product.size),
            chip.l1 // (2 * (base_m + base_n) * product.size),
            k,
        )
        base_k = longest // _ALIGNED * _ALIGNED
        if base_k:
            count = math.ceil(m / base_m) * math.ceil(n / base_n) * product.count
            yield Tile(base_m, base_n, base_k, count)


def _cube_cycles(product: Product, chip: Chip, tile: Tile, vector_passes: int) -> Cycles:
    k = _up(product.k)
    steps = math.ceil(k / tile.base_k)
    a, b = tile.base_m * product.size, tile.base_n * product.size
    step_m, step_n, step_k = chip.cube
    factor = chip.cube_int8_factor if product.size == 1 else 1
    area = tile.base_m * tile.base_n
    each = {
        "mac": math.ceil(tile.base_m / step_m)
        * math.ceil(tile.base_n / step_n)
        * math.ceil(k / step_k / factor)
        + steps * chip.cube_start,
        "vec": (1 + vector_passes) * (math.ceil(area * 4 / chip.vector_bytes) + chip.vector_start),
        "scalar": (4 * steps + 8) * chip.scalar_per_instruction,
        "mte1": math.ceil(a * k / chip.l1_to_l0a) + math.ceil(b * k / chip.l1_to_l0b),
        "mte2": math.ceil((a + b) * k / chip.memory_to_core),
        "mte3": math.ceil(area * product.out_size / chip.core_to_memory),
    }
    cores = min(chip.cores, tile.count)
    tiles = math.ceil(tile.count / cores)
    fill = (
        chip.mte2_latency + math.ceil((a + b) * min(tile.base_k, k) / chip.memory_to_core) + chip.mte1_latency
    )
    drain = each["vec"] + each["mte3"] + chip.mte3_latency
    total = fill + tiles * max(each.values()) + drain
    return Cycles(total, cores, {pipe: tiles * n for pipe, n in each.items()}, tile)


@functools.lru_cache(4096)
def of_product(product: Product, chip: Chip, vector_passes: int = 0) -> Cycles:
    """The fastest tiling of a product; `vector_passes` are instructions on each of its results besides."""
    if not product.m * product.n * product.count:
        return Cycles(0, 1, dict.fromkeys(PIPES, 0))
    found = (_cube_cycles(product, chip, tile, vector_passes) for tile in _tilings(product, chip))
    return min(found, key=lambda c: c.total)


def of_vector(chip: Chip, passes: float, bytes_in: int, bytes_out: int, width: int) -> Cycles:
    """`passes` instructions on `width` bytes of operands in all, which come from memory and go there."""
    if not bytes_in + bytes_out:
        return Cycles(0, 1, dict.fromkeys(PIPES, 0))
    chunk = chip.ub // 4  # operands and results, twice
    cores = max(1, min(chip.cores, math.ceil(width / chunk) if width > chunk else math.ceil(width / 2048)))
    share = 1 / cores
    rounds = max(1, math.ceil(width * share / chunk))
    busy = {
        "mac": 0,
        "vec": math.ceil(passes * width * share / chip.vector_bytes)
        + math.ceil(passes) * rounds * chip.vector_start
        if passes
        else 0,
        "scalar": (8 + 4 * rounds * math.ceil(passes)) * chip.scalar_per_instruction,
        "mte1": 0,
        "mte2": math.ceil(bytes_in * share / chip.memory_to_core),
        "mte3": math.ceil(bytes_out * share / chip.core_to_memory),
    }
    slowest = max(busy.values())
    others = (sum(busy[p] for p in ("vec", "mte2", "mte3")) - slowest) // rounds
    total = slowest + max(others, 0) + chip.mte2_latency + chip.mte3_latency
    return Cycles(total, cores, busy)


# ---- tasks -------------------------------------------------------------------------------------------------


def products_of(op: str, inputs: tuple[Buffer | None, ...], out: tuple[int, ...], attrs: dict) -> Product:
    """The product that an op of the cube is on the device, with channels in whole blocks."""
    x, y = (b for b in inputs[:2] if b is not None)
    size, out_size = min(x.dtype.itemsize, 2), x.dtype.itemsize
    if op == "dense":
        return Product(math.prod(x.shape[:-1]), y.shape[0], x.shape[-1], 1, size, out_size)
    if op in ("mat_mul", "batch_matmul"):
        k = x.shape[-2 if attrs["transpose_a"] else -1]
        return Product(out[-2], out[-1], k, math.prod(out[:-2]), size, out_size)
    c0, group = c0_of(size), attrs["group"]
    if op == "conv":
        taps = math.prod(y.shape[2:])
        k = _up(y.shape[1], c0) * taps
        return Product(out[0] * math.prod(out[2:]), out[1] // group, k, group, size, out_size)
    if op == "conv_input_grad":
        k = _up(y.shape[0] // group, c0) * math.prod(y.shape[2:])
        return Product(out[0] * math.prod(out[2:]), out[1] // group, k, group, size, out_size)
    columns = _up(out[1], c0) * math.prod(out[2:])
    places = y.shape[0] * _up(math.prod(y.shape[2:]))
    return Product(out[0] // group, columns, places, group, size, 4)


def _flops(op: str, types: tuple, outs: tuple, attrs: dict) -> float:
    found = cost.cost(find(op).definition, types, outs, attrs)
    return 0.0 if found is None else float(found.flops)


def _type(buffer: Buffer | None) -> TensorType | None:
    return None if buffer is None else TensorType(buffer.dtype, buffer.shape)


def _attention(task: Task, chip: Chip) -> Cycles:
    """Two products for attention, five for its gradient, and the softmax between them."""
    query, key, value = (b for b in task.inputs[task.op == "attention_grad" :][:3] if b is not None)
    (*batch, rows, depth), (columns, width) = query.shape, (key.shape[-2], value.shape[-1])
    size, out_size = min(query.dtype.itemsize, 2), query.dtype.itemsize
    inner = Product(rows, columns, depth, math.prod(batch), size, out_size)
    outer = Product(rows, width, columns, math.prod(batch), size, out_size)
    count = 1 if task.op == "attention" else 2
    found = [of_product(inner, chip, 4)] * count + [of_product(outer, chip)] * (count + (count > 1))
    busy = {pipe: sum(c.busy[pipe] for c in found) for pipe in PIPES}
    return Cycles(sum(c.total for c in found), max(c.cores for c in found), busy)


def of_task(task: Task, chip: Chip) -> Cycles:
    """The cycles of a task that ran."""
    out = task.outputs[0]
    bytes_in = sum(b.nbytes for b in task.inputs if b is not None)
    bytes_out = sum(b.nbytes for b in task.outputs)
    widest = max((b.nbytes for b in (*task.inputs, *task.outputs) if b is not None), default=0)
    host = next((name for name in task.names if name in cube.HOSTS), None)
    if host is not None:
        if task.fusion:
            name, places, pairs, _ = next(p for p in task.attrs["parts"] if p[0] == host)
            taken = tuple(None if p is None or p < 0 else task.inputs[p] for p in places)
            return of_product(
                products_of(name, taken, task.host_shape, dict(pairs)), chip, len(task.parts) - 1
            )
        return of_product(products_of(task.op, task.inputs, out.shape, task.attrs), chip)
    if task.op in attention.WRITTEN:
        return _attention(task, chip)
    if task.unit == SCALAR:
        return of_vector(chip, 0, 0, bytes_out, bytes_out)
    if task.unit == MTE:
        return of_vector(chip, 0, bytes_out, bytes_out, bytes_out)
    if task.fusion:
        return of_vector(chip, len(task.parts), bytes_in, bytes_out, widest)
    types = tuple(map(_type, task.inputs))
    elements = max((t.size for t in (*types, _type(out)) if t is not None), default=0)
    attrs = {name: value for name, value in task.attrs.items()}
    flops = _flops(task.op, types, tuple(map(_type, task.outputs)), attrs)
    return of_vector(chip, max(1.0, flops / max(1, elements)), bytes_in, bytes_out, widest)
