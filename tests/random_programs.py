"""Programs at random, as source text: ops of every family on float, integer and bool tensors, control flow,
Parameters that change.  A line stays if an eager trial run of it gives few, small and finite values.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

import mycelia as ms
from mycelia import ops

LARGEST = 3000  # elements of a value

# Holes are filled by Program.fill: x and y are float tensors, i and j others; then axes, sizes, constants.
POINTWISE = """
ops.relu({x}) | ops.tanh({x}) | ops.sigmoid({x}) | ops.gelu({x}) | ops.gelu({x}, approximate='tanh')
ops.erf({x}) | ops.exp({x} * 0.1) | -{x} | ops.sqrt({x} * {x} + 1.0) | ops.abs({x}) | ops.silu({x})
ops.hardswish({x}) | ops.elu({x}) | ops.leaky_relu({x}, 0.1) | ops.sin({x}) | ops.cos({x})
ops.log(ops.abs({x}) + 1.0) | ops.log1p({x} * {x}) | {x} ** 2 | ops.expm1({x} * 0.2)
ops.rsqrt({x} * {x} + 0.5) | ops.clamp({x}, -0.7, 1.1) | ops.mish({x}) | ops.logsigmoid({x})
(ops.abs({x}) + 0.1) ** 1.5 | ops.atan({x}) | {x} * 1.5 + 0.25 | 1.0 - {x} | 2.0 / ({x} * {x} + 1.0)
{x} / 3.0 | {x} * 1.0 + 0.0 | ops.softplus({x}) | ops.floor({x}) | ops.round({x}) | ops.sign({x})
ops.stop_gradient({x}) | ops.where({x} > 0.2, {x}, {x} * 0.5) | ops.masked_fill({x}, {x} > 1.0, 0.3)
ops.tril({x}) | ops.triu({x}, 1) | {x} + {y} | {x} - {y} | {x} * {y} | {x} / (ops.abs({y}) + 1.0)
ops.maximum({x}, {y}) | ops.minimum({x}, {y}) | ops.where({x} > {y}, {x}, {y} * 0.5)
({x} + {y}) * {x} - {y} | ops.addcmul({x}, {y}, {y}, 0.3) | ops.lerp({x}, {y}, 0.3)
({x} >= {y}).astype({x}.dtype) * {x} | ops.floor_mod({x}, ops.abs({y}) + 1.0) | ops.logaddexp({x}, {y})
{x} * True | ops.mse_loss({x}, {y}) | {x}.astype({y}.dtype) + {y} | {x} * {y}.astype(ms.float16)
ops.hypot({x}, {y} + 3.0)
"""
ROWS = """
{x}.sum({axes}, keepdims={keep}) | {x}.mean({axes}, keep_dims={keep}) | ops.amax({x}, {axes}, {keep})
ops.amin({x}, {axes}, {keep}) | ops.sqrt({x}.var({axis}, keepdims={keep}) + 0.1)
ops.logsumexp({x}, {axes}, {keep}) | ops.prod({x}, {axis}, {keep})
ops.max({x}, {axis}, keepdims={keep})[0] | ops.norm({x} + 0.1, 2, {axis}, {keep})
ops.sum(ops.exp({x} * 0.1), {axes}, {keep}) | {x} - {x}.mean({axes}, True) | ops.median({x}, {axis})[0]
({x} - ops.mean({x}, {axes}, True)) * ops.rsqrt({x}.var({axis}, keepdims=True) + 0.1)
{x} / (ops.abs({x}).sum({axes}, keepdims={keep}) + 1.0) | {x} - {x}.mean({axes}, keep_dims={keep})
ops.exp(({x} - ops.amax({x}, {axis}, {keep})) * 0.1) | ({x} * {y}).sum({axes}, keepdims={keep})
({x} + {y}).mean({axis}) | ops.amax({x} - {y}, {axis}, {keep}) * {y} | ops.reduce_sum({x}, {axis}) + {y}
ops.sqrt(ops.abs({x}).sum({axis}) + 0.1) * {x} | {x}.transpose({order}).sum({axes}, keepdims={keep})
{x}[{slices}].mean({axis}) | {x}.reshape({x}.shape[::-1]).sum({axis})
({x} * ops.sort({vector})[0]).sum({axis}) | ops.expand_dims({x}.sum({axis}), {axis2}) * {x}
{x} / (ops.abs({x}).sum() + 1.0) | ops.softmax({x}, {axis}) | ops.log_softmax({x}, {axis})
ops.cumsum({x}, {axis}) | ops.cumprod({x} * 0.5 + 0.5, {axis}) | ops.sort({x}, {axis})[0]
ops.flip({x}, ({axis},)) | ops.roll({x}, {small}, {axis}) | ops.cummax({x}, {axis})[0]
ops.logcumsumexp({x}, {axis}) | ops.topk({x}, 1, {axis})[0] | {x} * ops.argsort({x}, {axis})
"""
SHAPES = """
{x}.reshape(-1) | {x}.reshape({x}.shape[0], -1) | {x}.transpose({order}) | {x}[{slices}] | {x}[{slices}]
ops.flatten({x}) | ops.tile({x}, {tiles}) | ops.pad({x}, ({small}, 1))
ops.pad({x}, (1, 0, {small}, 2), 'constant', 0.5) | {x}[None] | {x}.transpose({order}).transpose({order})
ops.broadcast_to({x}[:1], {x}.shape) | ops.cat(({x}[1:], {x}[:1]), 0) | {x}.reshape({x}.shape[::-1])
ops.pad({x}, (1, 1), 'reflect') | ops.swapaxes({x}, {axis}, {axis2}) | ops.squeeze({x})
ops.cat(({x}, {x} * 0.5), {axis}) | ops.stack(({x}, ops.tanh({x})), {axis}) | ops.chunk({x}, 2, {axis})[-1]
ops.gather({x}, ms.Tensor([0, 0]), {axis}) | ops.repeat_interleave({x}, 2, {axis})
ops.unbind({x}, {axis})[0] | ops.gather_elements({x}, {axis}, ops.argsort({x}, {axis}).astype(ms.int64))
ops.glu({x}, {axis}) | ops.diagonal({x})
ops.index_select({x}, {axis}, ops.arange({x}.shape[{axis}] - 1, -1, -1)) | {x}[:, ms.Tensor([0, -1])]
"""
PRODUCTS = """
ops.matmul({x}, {y}.swapaxes(-1, -2)) * 0.3 | ops.matmul({x}.swapaxes(-1, -2), {y}) * 0.3
ops.matmul({x}, {y}) * 0.3 | ops.matmul({x}.swapaxes(-1, -2), {y}.swapaxes(-1, -2)) * 0.3
ops.einsum('...ij,...kj->...ki', {x}, {y}) * 0.3
ops.matmul(ops.softmax(ops.matmul({x}, {y}.swapaxes(-1, -2)) * 0.3, -1), {y}) | ops.matmul({x}, {square})
{x} @ {vector} | ops.dense({x}, {square}, {vector}) | ops.relu(ops.dense({x}, {wide}))
ops.matmul({x}, {wide}.T) + 0.5 | {vector} * {x} | ops.gelu(ops.matmul({x}, {square}) + {vector}) + {x}
ops.matmul({square}, {x}.swapaxes(-1, -2)) | ops.layer_norm({x}, ({x}.shape[-1],), {vector}, {vector})
ops.rms_norm({x}, {vector})[0] | ops.softmax({x} + {vector}, -1)
ops.outer({x}.reshape(-1)[:5], {y}.reshape(-1)[:4]) | ops.cross_entropy({x}, ops.argmax({x}, 1))
"""
IMAGES = """
ops.conv2d({x}, {kernel}, stride={stride}, pad_mode='pad', padding={pads}, dilation={dilation})
ops.conv2d({x}, {kernel}, bias={bias}, pad_mode='same', stride={stride})
ops.relu(ops.conv2d({x}, {kernel}, {bias}))
ops.conv2d({x}, {grouped}, pad_mode='pad', padding={pads}, groups=2, stride={stride})
ops.conv2d({x}, {depth}, pad_mode='pad', padding={pads}, groups={x}.shape[1], stride={stride})
ops.relu6(ops.batch_norm(ops.conv2d({x}, {kernel}), {bias}, ops.abs({bias}), {bias} + 1.0, {bias}))
ops.max_pool2d({x}, {window}, {stride}, {half})
ops.avg_pool2d({x}, {window}, {stride}, {half}, False, {keep}) | ops.adaptive_avg_pool2d({x}, ({small}, 2))
ops.interpolate({x}, size=(5, 3), mode='bilinear') | ops.group_norm({x}, 2)
{x} * ops.sigmoid({x}.mean((2, 3), True))
ops.relu({x} + ops.conv2d({x}, {plain}, {channels}, pad_mode='same')) | {x} + {channels}[:, None, None]
{x}.transpose(0, 2, 3, 1) | normalized({x}, {channels})
ops.conv_transpose2d({x}, {turned}, stride={stride}, padding={half})
ops.hardswish(ops.conv2d(ops.conv2d({x}, {depth}, pad_mode='same', groups={x}.shape[1]), {point}))
"""
TYPES = """
{x}.astype(ms.int32) | ({x} * 3.0).astype(ms.int64) | {x} > 0.1 | {x} != 0
ops.abs({x} * 9.0).astype(ms.uint8) | {x}.astype(ms.float16) | {x}.astype(ms.bfloat16)
({x} * 4.0).astype(ms.int8) | ops.argmax({x}, {axis}) | {x}.astype(ms.bool_) | ops.argsort({x}, {axis})
"""
WHOLE = """
{i} + {j} | {i} * {j} | {i} - {j} | {i} // 3 | {i} % 3 | {i} > {j} | {i} == {j} | {i} + 0.5
ops.where({i} > {j}, {i}, {j}) | ops.logical_and({i} > 0, {j} > 0) | ops.logical_not({i})
ops.bitwise_and({i}, {j}) | {i} * 1.5 | ops.abs({i}) | {i}.astype(ms.float32) * 0.25 | ops.sum({i}, -1)
{i}.any(0) | ops.cumsum({i}, 0) | {i} / 2 | {x} * {i} | {x} + {i} | ops.where({i} > 0, {x}, 0.0)
ops.clamp({i}, -2, 3) | ops.gather({x}, ops.abs({i}) % {x}.shape[0], 0) | {i}.max()
"""
FAMILIES = {
    name: [t.strip() for line in text.strip().splitlines() for t in line.split(" | ")]
    for name, text in dict(
        pointwise=POINTWISE,
        rows=ROWS,
        shapes=SHAPES,
        products=PRODUCTS,
        images=IMAGES,
        types=TYPES,
        whole=WHOLE,
    ).items()
}


def normalized(x, scale):
    """Normalization by the batch, as BatchNorm2d does it in training."""
    return ops.batch_norm(x, scale * 0.0, scale * 0.0 + 1.0, scale, scale, training=True)


def kind_of(tensor) -> str:
    name = str(tensor.dtype).lower()
    return "float" if "float" in name else "bool" if "bool" in name else "int"


class Holes(dict):
    """Each hole of a template makes its filling when it is met."""

    def __getitem__(self, key):
        return super().__getitem__(key)()


class Program:
    """`source` defines f(x0, x1, x2), which uses `names`; `initial` has the first values of Parameters."""

    def __init__(self, seed: int, lines: int = 14):
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.names = {"ops": ops, "ms": ms, "normalized": normalized}
        self.initial: dict[str, np.ndarray] = {}
        self.body: list[str] = []
        self.count = 0
        r = self.random
        self.batch = r.choice((1, 2, 3, 4, 7))
        sizes = {
            "image": (r.choice((1, 2, 3, 4, 8, 16, 24)), r.randint(3, 11), r.randint(3, 11)),
            "rows": (r.randint(1, 9), r.choice((1, 4, 8, 17))),
            "any": tuple(r.randint(1, 6) for _ in range(r.randint(0, 3))),
            # Sizes that say nothing about which axis is meant.
            "equal": (r.choice((2, 3, 4, 8)),) * r.randint(1, 3),
            "one or two": tuple(r.randint(1, 2) for _ in range(r.randint(1, 3))),
        }[r.choice(("image", "rows", "any", "equal", "equal", "one or two"))]
        if r.random() < 0.7 and len(set(sizes)) == 1:
            self.batch = sizes[0]
        whole = (self.batch, *sizes)
        partial = tuple(r.choice((1, n)) for n in whole[r.randint(0, len(sizes)) :])
        self.shapes = [whole, whole, r.choice([whole, sizes[-1:], (self.batch, *[1] * len(sizes)), partial])]
        self.values = {f"x{i}": ms.Tensor(a) for i, a in enumerate(self.inputs())}
        for _ in range(20 * lines):
            if len(self.body) < lines:
                self.attempt(self.statement())
        made = [n for n in self.values if n[0] == "v"] or ["x0"]
        results = dict.fromkeys([*r.sample(made, min(len(made), 3)), made[-1]])
        body = "".join(f"    {line}\n" for line in self.body)
        self.source = f"def f(x0, x1, x2):\n{body}    return ({', '.join(results)},)\n"

    def inputs(self, batch: int | None = None, axis: int = 0) -> list[np.ndarray]:
        """Arguments, whose `axis`, by default the first, has the size `batch`."""
        rng = np.random.default_rng(batch)
        whole = len(self.shapes[0])
        shapes = [list(s) for s in self.shapes]
        for shape in shapes if batch is not None else ():
            place = axis - whole + len(shape)
            if place >= 0 and (shape[place] != 1 or self.shapes[0][axis] == 1):
                shape[place] = batch
        return [rng.normal(size=s).astype(np.float32) for s in shapes]

    def function(self, path: Path):
        """f, its source written to a file: the capture of control flow reads it."""
        path.write_text(self.source)
        scope = dict(self.names)
        exec(compile(self.source, path, "exec"), scope)
        return scope["f"]

    def reset(self) -> None:
        """Parameters get their first values again."""
        for name, value in self.initial.items():
            self.names[name].set_data(ms.Tensor(value.copy()))

    # ---- lines ---------------------------------------------------------------------------------------------

    def attempt(self, lines: list[str]) -> None:
        trial = {**self.names, **self.values}
        self.reset()
        try:
            exec("\n".join(lines), trial)
        except (ValueError, TypeError, IndexError, AttributeError, SyntaxError, KeyError):
            return  # shapes or dtypes that do not fit
        found = {n: v for n, v in trial.items() if n[0] in "xv" and isinstance(v, ms.Tensor)}
        for name, value in found.items():
            if value is not self.values.get(name):
                array = value.astype(ms.float32).asnumpy()
                if not 0 < array.size <= LARGEST or array.ndim > 6 or not (np.abs(array) < 60).all():
                    return
        self.values = found
        self.body += lines

    def statement(self) -> list[str]:
        self.count += 1
        k = self.random.random()
        if k < 0.88:
            return [f"v{self.count} = {self.expression()}"]
        if k < 0.91 and self.initial:
            p = self.random.choice(list(self.initial))
            change = f"{p} * 0.5 + {self.pick('float')}.astype(ms.float32).mean() * 0.1"
            return [self.random.choice((f"ops.assign({p}, {change})", f"ops.assign_sub({p}, {change})"))]
        return self.block(2)

    def expression(self) -> str:
        x = self.pick("float")
        families = ["pointwise", "pointwise", "rows", "shapes", "products", "types"]
        families += ["images"] * 6 * (self.values[x].ndim == 4) + ["whole"] * (
            self.pick("int", "bool") is not None
        )
        return self.fill(self.random.choice(FAMILIES[self.random.choice(families)]), x)

    def pick(self, *kinds: str) -> str | None:
        """A name whose value has a dtype of these kinds, rather a late one."""
        names = [n for n, v in self.values.items() if kind_of(v) in kinds]
        return names[max(self.random.randrange(len(names)) for _ in range(2))] if names else None

    def like(self, x: str) -> str:
        """A float, likely of the same shape."""
        names = [
            n for n, v in self.values.items() if kind_of(v) == "float" and v.shape == self.values[x].shape
        ]
        return self.random.choice(names) if self.random.random() < 0.6 else self.pick("float")

    def constant(self, *shape: int) -> str:
        """A Tensor or a Parameter of a shape, now and then one that is used already."""
        r = self.random
        have = [n for n, v in self.names.items() if n[0] in "wp" and v.shape == shape]
        if have and r.random() < 0.5:
            return r.choice(have)
        self.count += 1
        array = (self.numbers.normal(size=shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(np.float32)
        name = f"{r.choice('wwp')}{self.count}"
        self.names[name] = ms.Tensor(array)
        if name[0] == "p":
            self.initial[name] = array
            self.names[name] = ms.Parameter(self.names[name], name=name)
        return name

    def fill(self, template: str, x: str) -> str:
        r, shape = self.random, self.values[x].shape
        rank = len(shape)
        last, channels = shape[-1] if rank else 1, shape[1] if rank > 1 else 1
        chosen = tuple(sorted(r.sample(range(rank), r.randint(0, rank))))
        out, h, w = r.choice((1, 2, 3, 4, 8, 16)), r.choice((1, 2, 3, 3, 5)), r.choice((1, 2, 3, 3, 5))

        def axis():
            return r.randrange(-rank, rank) if rank else 0

        return template.format_map(
            Holes(
                x=lambda: x,
                y=lambda: self.like(x),
                i=lambda: self.pick("int", "bool"),
                j=lambda: self.pick("int", "bool"),
                axis=axis,
                axis2=axis,
                axes=lambda: r.choice((chosen or None, axis(), tuple(a - rank for a in chosen) or None)),
                keep=lambda: r.random() < 0.5,
                small=lambda: r.randint(0, 2),
                order=lambda: tuple(r.sample(range(rank), rank)),
                tiles=lambda: tuple(r.randint(1, 2) for _ in shape),
                slices=lambda: ", ".join(self.slice(n) for n in shape[: r.randint(1, max(1, rank))]),
                square=lambda: self.constant(last, last),
                vector=lambda: self.constant(last),
                wide=lambda: self.constant(r.choice((1, 3, 8, 19)), last),
                channels=lambda: self.constant(channels),
                bias=lambda: self.constant(out),
                kernel=lambda: self.constant(out, channels, h, w),
                point=lambda: self.constant(out, channels, 1, 1),
                plain=lambda: self.constant(channels, channels, 3, 3),
                grouped=lambda: self.constant(2 * out, max(channels // 2, 1), h, w),
                depth=lambda: self.constant(channels, 1, h, w),
                turned=lambda: self.constant(channels, out, h, w),
                stride=lambda: r.choice((1, 1, 2, 3, (1, 2), (2, 1))),
                pads=lambda: r.choice((0, 1, 2, (1, 0), (2, 1))),
                dilation=lambda: r.choice((1, 1, 1, 2, (1, 3))),
                window=lambda: r.choice((1, 2, 3, (3, 2), 5)),
                half=lambda: r.choice((0, 0, 1)),
            )
        )

    def slice(self, n: int) -> str:
        r = self.random
        start, stop = sorted((r.randint(0, n), r.randint(0, n)))
        return r.choice((":", f"{start}:{stop}", f"{start}:", ":-1", "::2", "1::3", "::-1", "-1", "None"))

    # ---- control flow --------------------------------------------------------------------------------------

    def block(self, depth: int) -> list[str]:
        r = self.random
        self.count += 1
        counter = f"i{self.count}"
        kind = r.choice(("if", "if else", "for", "while"))
        if kind == "for":
            head = [f"for {counter} in range({r.randint(1, 3)}):"]
        elif kind == "while":
            start = r.choice(("ms.Tensor(0)", "0", f"({self.pick('float')}.sum() * 0).astype(ms.int32)"))
            head = [
                f"{counter} = {start}",
                f"while {counter} < {r.randint(1, 3)}:",
                f"    {counter} = {counter} + 1",
            ]
        else:
            head = [f"if {self.condition()}:"]
        lines = head + self.inside(depth)
        if kind in ("for", "while") and r.random() < 0.4:
            lines += [f"    if {self.condition()}:", f"        {r.choice(('break', 'continue'))}"]
        return lines + (["else:", *self.inside(depth)] if kind == "if else" else [])

    def inside(self, depth: int) -> list[str]:
        lines = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.block(depth - 1) if depth > 1 and self.random.random() < 0.3 else [self.change()]
        return ["    " + line for line in lines]

    def condition(self) -> str:
        x, y = self.pick("float"), self.pick("float")
        return self.random.choice(
            (
                # No bound is a number that values come close to: the mean of what was centred is nearly 0.
                f"{x}.mean() > {y}.mean() + 0.0371",
                f"ops.amax({x}) > 0.53 and {y}.mean() < 1.07",
                f"not {x}.sum() > 0.0193",
                "x0.shape[0] > 2",
            )
        )

    def change(self) -> str:
        """A value gets another of its shape and dtype."""
        x, y = self.pick("float"), self.pick("float")
        return self.random.choice(
            (
                f"{x} = {x} * 0.5 + {y}.mean().astype({x}.dtype)",
                f"{x} = ops.tanh({x})",
                f"{x} = ops.where({x} > {y}.astype({x}.dtype).mean(), {x}, -{x})",
            )
        )
