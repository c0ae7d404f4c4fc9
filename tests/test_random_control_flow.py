"""Functions and Cells of random branches, loops, breaks and returns give compiled what they give eagerly.

The same in every run; tools/fuzz.py tries others.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import mycelia as ms
from mycelia import Tensor, nn

# Compiled, what only some paths through a program define may be an error where Python finds it defined.
REFUSED = (UnboundLocalError, NameError, TypeError)


class Writer:
    """Statements over names that can be read and some that can be assigned to, and `own` ones."""

    def __init__(self, seed, readable, assignable, own=()):
        self.random, self.readable, self.assignable, self.own = random.Random(seed), readable, assignable, own
        self.loops = 0

    def expression(self, depth=0):
        r = self.random
        k = r.random()
        if k < 0.6 or depth > 2:
            return r.choice(self.readable)
        if k < 0.75:
            return str(r.choice((-2, -1, 1, 2, 3)))
        return f"({self.expression(depth + 1)} {r.choice('+-*')} {self.expression(depth + 1)})"

    def condition(self):
        r = self.random
        test = f"{self.expression()} {r.choice(('<', '>', '<=', '!='))} {self.expression()}"
        k = r.random()
        if k < 0.15:
            return f"not ({test})"
        return (
            f"({test}) {r.choice(('and', 'or'))} ({self.expression()} > {self.expression()})"
            if k < 0.3
            else test
        )

    def block(self, depth, in_loop):
        lines = [line for _ in range(self.random.randint(1, 3)) for line in self.statement(depth, in_loop)]
        return ["    " + line for line in lines]

    def simple(self):
        r = self.random
        if self.own and r.random() < 0.5:
            return [r.choice(self.own)]
        name = r.choice(self.assignable)
        choices = (
            f"{name} = {self.expression()} * 0.5 + x * 0",
            f"{name} {r.choice('+-')}= {self.expression()} * 0.5",
            # An attribute that is given a Parameter itself is, in Python, that Parameter from then on.
            f"{name} = ({self.expression()} if {self.condition()} else {self.expression()})"
            f"{' + x * 0' if self.own else ''}",
            "a, b = b, a",
        )
        return [r.choice(choices)]

    def statement(self, depth, in_loop):
        r = self.random
        k = r.random()
        if depth == 0 or k < 0.4:
            return self.simple()
        if k < 0.65:
            lines = [f"if {self.condition()}:", *self.block(depth - 1, in_loop)]
            if r.random() < 0.25:
                lines += [f"elif {self.condition()}:", *self.block(depth - 1, in_loop)]
            return lines + (["else:", *self.block(depth - 1, in_loop)] if r.random() < 0.6 else [])
        if k < 0.87:
            self.loops += 1
            i = f"i{self.loops}"
            if r.random() < 0.5:
                lines = [
                    f"for {i} in range({r.choice('23n')}):",
                    *self.block(depth - 1, True),
                    f"    a = a + {i} * 0.1",
                ]
            else:
                lines = [
                    f"{i} = {r.choice(('n * 0', '0'))}",
                    f"while {i} < {r.choice('23n')}:",
                    f"    {i} = {i} + 1",
                ]
                lines += self.block(depth - 1, True)
            return lines + (["else:", *self.block(depth - 1, in_loop)] if r.random() < 0.15 else [])
        if k < 0.93 and in_loop:
            return [r.choice(("break", "continue"))]
        return [f"return {self.expression()} + x * 0"] if k < 0.97 else self.simple()

    def body(self):
        return [line[4:] for _ in range(self.random.randint(1, 2)) for line in self.block(3, False)]


def defined(source, path, name):
    path.write_text(source)
    scope = {"nn": nn, "ms": ms, "Tensor": Tensor}
    exec(compile(source, path, "exec"), scope)
    return scope[name]


def outcome(function, *arguments):
    """The numbers that a call returns, or the class of its error."""
    try:
        result = function(*arguments)
    except REFUSED as error:
        return type(error)
    return np.asarray(result.asnumpy() if isinstance(result, Tensor) else result, np.float64)


@pytest.mark.fuzz(20)
def test_functions_of_whole_numbers(seed, tmp_path):
    writer = Writer(seed, ["a", "b", "c", "d", "x", "l[0]"], ["a", "b", "c", "d", "l[0]", "l[1]"])
    lines = ["a = x + 1", "b = x * 2", "c = 3", "d = x - n", "l = [x, 2]", *writer.body()]
    lines.append("return a + 2 * b + 3 * c + 5 * d + 7 * l[0] + 11 * l[1]")
    source = "def f(x, n):\n" + "".join(f"    {line}\n" for line in lines)
    function = defined(source, tmp_path / "program.py", "f")
    compiled = ms.jit(function)
    for x in (-2, 0, 4):
        for n in (1, 3):
            arguments = Tensor(x, ms.int64), Tensor(n, ms.int64)
            found, expected = outcome(compiled, *arguments), outcome(function, *arguments)
            if not isinstance(found, type) and not isinstance(expected, type):
                np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=f"x = {x}, n = {n}\n{source}")


CELL = """
class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.p = ms.Parameter(Tensor(0.3), name="p")
        self.q = ms.Parameter(Tensor(-0.4), name="q")

    def construct(self, x, n):
        def g(u):
            if u > 0.5:
                return u * 0.7
            return u * u + x * 0

        def mix(row, by):
            row[0] = row[0] * 0.5 + by

        a, b, c = x * 1.5, x - 1.0, x * x
        t = (x, x + 0.5)
        l = [x * 2.0, x - 3.0]
        d = {"k": x * 0.1, "m": x + 1.1}
        s = [(x * 0.3, x * 0.2), {"z": [x, x * 0.7]}]
"""
RESULT = """return (
            a + 2 * b + 3 * c + 5 * t[0] + 7 * t[1] + 11 * l[0] + 13 * l[1] + d["k"] + 17 * d["m"]
            + 19 * s[0][0] + 23 * s[0][1] + 29 * s[1]["z"][0] + 31 * s[1]["z"][1]
        )"""
OWN = (
    "c = g(a)", "self.p = self.p * 0.5 + a * 0.1",
    "t = (t[1], a * 0.5)", "t = t[::-1]", "t = (*t[1:], t[0])", "t, s[0] = s[0], t", "a, b = t",
    "t = tuple(l)", "l = [l[1], b]", "l[0], l[1] = l[1], l[0]", "l.append(l.pop(0) * 0.5)",
    "l.insert(0, l.pop())", "l.reverse()", "l = [v * 0.9 for v in l]", "l[:] = [l[1], a]", "l = list(t)",
    "a = sum(l)", "mix(l, a)", 'd = {"k": c, "m": d["k"]}', 'd["k"], d["m"] = d["m"], d["k"]',
    'd["k"], l[0] = l[0], d["k"]',
    "d = {k: v * 0.5 for k, v in d.items()}", "d.update(k=a)", 'd |= {"k": c}', "d = dict(d, m=b)",
    "s[0] = t", 's[1]["z"] = [s[1]["z"][1], l[0]]', 's[1]["z"][0] = a * 0.5', 'mix(s[1]["z"], b)',
    's[1]["z"], l = l, s[1]["z"]', 's = [s[0][::-1], {"z": [b, a]}]',
)  # fmt: skip


@pytest.mark.fuzz(20)
def test_cells_with_their_gradients(seed, tmp_path):
    names = ["a", "b", "c", 'd["k"]', 'd["m"]', "l[0]", "l[1]", 's[1]["z"][1]']
    readable = [*names, "t[0]", "t[1]", "s[0][0]", "x", "self.p", "self.q"]
    writer = Writer(seed, readable, [*names, "self.p"], OWN)
    source = CELL + "".join(f"        {line}\n" for line in [*writer.body(), RESULT])
    cell = defined(source, tmp_path / "program.py", "Net")

    def numbers(net, call, *arguments):
        """The result, the gradients of x and of both Parameters, and what p is after each."""
        found = []
        for function in (call, ms.grad(call, 0, (net.p, net.q))):
            net.p.set_data(Tensor(0.3))
            result = function(*arguments)
            of_x, of_weights = result if isinstance(result, tuple) else (result, ())
            found += [float(of_x), float(net.p), *map(float, of_weights)]
        return found

    plain, other = cell(), cell()
    compiled = ms.jit(other)
    for x in (-1.2, 0.3, 2.0):
        for n in (1, 3):
            arguments = Tensor(x, ms.float32), Tensor(n, ms.int64)
            expected = numbers(plain, plain, *arguments)
            # Products in loops grow without end: what float32 does not hold well is not compared.
            if np.abs(expected).max() < 1e5:
                found = numbers(other, compiled, *arguments)
                np.testing.assert_allclose(
                    found, expected, rtol=1e-3, atol=1e-3, err_msg=f"x = {x}, n = {n}\n{source}"
                )
