"""Networks that read and write Parameters: a file gives the same numbers at every call, in any order that it
allows.

That MindSpore 2.10 gives them too was checked with MindSpore for the networks and the random programs here.
"""

import importlib.util
import random

import numpy as np
import pytest

import mycelia as ms
from mycelia import Parameter, Tensor, nn, ops
from mycelia.io import mindir


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.c = Parameter(Tensor(np.array([1, 2, 3, 4], np.float32)), name="c")
        self.w = Parameter(Tensor(np.array([2, -1, 0.5, 1], np.float32)), name="w")


class ReadBefore(Net):
    def construct(self, x):
        b = self.c * 3.0
        ops.assign_add(self.c, x)
        return b, self.c * self.w


class ReadBetween(Net):
    def construct(self, x):
        b = self.c * 3.0
        ops.assign(self.c, b + x)
        d = self.c + self.w
        ops.assign(self.w, d)
        ops.assign(self.c, self.w * 2)
        return b, d, self.c + 0, self.w + 0


class Exchanged(Net):
    def construct(self, x):
        c = self.c * 1.0
        ops.assign(self.c, self.w)
        ops.assign(self.w, c)
        return self.c - self.w + x


class Views(Net):
    def construct(self, x):
        before = self.c.reshape(2, 2)
        ops.assign(self.c, x)
        return before, self.c.reshape(2, 2)


class Slices(Net):
    def construct(self, x):
        before = self.c[1:3]
        self.c[0:2] = x[2:]
        self.w[1] = self.c[0]
        return before, self.c + self.w


class Branches(Net):
    def construct(self, x):
        b = self.c * 2
        if x.sum() > 1:
            ops.assign_add(self.c, x)
        else:
            ops.assign(self.w, self.c)
        return b, self.c * self.w


class Rounds(Net):
    def construct(self, x):
        i = Tensor(0, ms.int32)
        b = self.c * 2
        while i < 3:
            ops.assign_add(self.c, x * self.w)
            self.w = self.w * 0.5
            i = i + 1
        return b, self.c + self.w


class Unread(Net):
    def construct(self, x):
        ops.assign(self.c, x * 2)
        return x + 1


NETWORKS = [ReadBefore, ReadBetween, Exchanged, Views, Slices, Branches, Rounds, Unread]


class Program:
    """The source of a random network of the Parameters p0, p1, ..."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.parameters = [f"p{i}" for i in range(self.random.randint(1, 3))]
        self.lines, self.names = [], 0

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def expression(self, names):
        a, b = (self.random.choice(names + [f"self.{p}" for p in self.parameters]) for _ in range(2))
        forms = (
            f"{a} + {b}", f"{a} * 0.5 - {b}", f"ops.relu({a})", f"{a}.reshape(2, 2).reshape(4)",
            f"ops.maximum({a}, {b} * 2)", f"ops.tanh({a})", a,
        )  # fmt: skip
        return self.random.choice(forms)

    def statements(self, names, indent, count, depth):
        for _ in range(self.random.randint(1, count)):
            self.statement(names, "    " * indent, indent, depth)

    def statement(self, names, pad, indent, depth):
        kind = self.random.random()
        if kind < 0.35 or depth > 2:
            made = self.name("v")
            self.lines.append(f"{pad}{made} = {self.expression(names)}")
            names.append(made)
        elif kind < 0.75:
            self.lines.append(pad + self.update(names))
        elif kind < 0.9:
            condition = self.random.choice(names + [f"self.{p}" for p in self.parameters])
            self.lines.append(f"{pad}if {condition}.sum() > {self.random.choice((-1, 0, 1, 2))}:")
            self.statements(list(names), indent + 1, 3, depth + 1)
            self.lines.append(f"{pad}else:")
            self.statements(list(names), indent + 1, 2, depth + 1)
        else:
            counter = self.name("i")
            self.lines.append(f"{pad}{counter} = Tensor(0, ms.int32)")
            self.lines.append(f"{pad}while {counter} < {self.random.randint(0, 3)}:")
            self.statements(list(names), indent + 1, 2, depth + 2)
            self.lines.append(f"{pad}    {counter} = {counter} + 1")

    def update(self, names):
        p, value = self.random.choice(self.parameters), self.expression(names)
        forms = (
            f"ops.assign(self.{p}, ({value}) * 0.5)", f"ops.assign_add(self.{p}, ({value}) * 0.5)",
            f"ops.assign_sub(self.{p}, ({value}) * 0.5)", f"self.{p} = {value} * 0.5",
            f"self.{p}[1:3] = ({value})[0:2]", f"self.{p} += {value} * 0.25",
        )  # fmt: skip
        return self.random.choice(forms)

    def source(self):
        names = ["x"]
        self.statements(names, 2, 7, 0)
        results = names[-3:] + [f"self.{p} + 0.0" for p in self.parameters]
        head = [
            "import numpy as np",
            "import mycelia as ms",
            "from mycelia import Parameter, Tensor, nn, ops",
        ]
        head += ["class Net(nn.Cell):", "    def __init__(self):", "        super().__init__()"]
        for p in self.parameters:
            values = [round(self.random.uniform(-1, 1), 2) for _ in range(4)]
            head.append(f"        self.{p} = Parameter(Tensor(np.array({values}, np.float32)), name='{p}')")
        body = ["    def construct(self, x):", *self.lines, f"        return {', '.join(results)}"]
        return "\n".join([*head, *body]) + "\n"


def flat(value):
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [np.array(value)]


def in_another_order(model):
    """The model with the assignments as early as the file allows, and every read of a Parameter as late.

    A Load is a view, as in MindSpore: who uses it sees what the Parameter is by then.
    """
    graph = model.graph
    operators = {p.name: p.op_type for p in model.primitives}
    nodes = {node.output[0]: node for node in graph.node}
    kind = {name: operators.get(node.op_type.removeprefix("REF::"), "") for name, node in nodes.items()}
    order, done = [], set()

    def emit(name):
        if name not in nodes or name in done:
            return
        done.add(name)
        node = nodes[name]
        for given in (*node.input, node.op_type.removeprefix("REF::")):
            emit(given)
        for place, given in enumerate(node.input):
            if kind.get(given) == "Load":
                again = type(node)()
                again.CopyFrom(nodes[given])
                again.output[0] = again.name = f"{given}_for_{name}_{place}"
                order.append(again)
                node.input[place] = again.output[0]
        order.append(node)

    assigned = [name for name in nodes if kind[name] == "Assign"]
    for name in [name for name in nodes if nodes[name].op_type == "Constant"] + assigned + list(nodes):
        emit(name)
    del graph.node[:]
    graph.node.extend(order)
    return model


def check(tmp_path, make):
    path = str(tmp_path / "net.mindir")
    inputs = [np.random.default_rng(i).normal(size=4).astype(np.float32) for i in range(3)]
    ms.export(make(), Tensor(inputs[0]), file_name=path, file_format="MINDIR")
    other = str(tmp_path / "other.mindir")
    mindir.save_mindir(in_another_order(mindir.load_mindir(path)), other)
    net, graph, ordered = make(), nn.GraphCell(ms.load(path)), nn.GraphCell(ms.load(other))
    for x in map(Tensor, inputs):
        want = flat(net(x))
        for loaded in (graph, ordered):
            for ours, theirs in zip(flat(loaded(x)), want, strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("net", NETWORKS, ids=lambda net: net.__name__)
def test_a_file_reads_and_writes_parameters_in_the_order_of_the_network(tmp_path, net):
    check(tmp_path, net)


@pytest.mark.fuzz(30)
def test_random_programs_give_the_same_numbers_at_every_call(tmp_path, seed):
    path = tmp_path / f"program_{seed}.py"
    path.write_text(Program(seed).source())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check(tmp_path, module.Net)
