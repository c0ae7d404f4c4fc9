"""rewrite: nodes of a network are found, changed and run; names and code as MindSpore forms them."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.rewrite import Node, NodeType, ScopedValue, SymbolTree, ValueType


class Part(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()
        self.scale = 2.0

    def construct(self, x):
        """Positive parts, scaled."""
        x = self.relu(x)
        return x * self.scale


class Net(nn.Cell):
    def __init__(self, early=False):
        super().__init__()
        self.fc = nn.Dense(3, 3, weight_init="ones", has_bias=False)
        self.relu = nn.ReLU()
        self.add = ops.Add()
        self.part = Part()
        self.chain = nn.SequentialCell([nn.ReLU(), nn.Tanh()])
        self.early = early
        self.rounds = 2

    def construct(self, x, y=2):
        if self.early:
            x = self.relu(x)
        z = self.add(x, y) + ops.abs(x) * 3
        a, b = x, z
        z = self.relu(self.part(z))
        for i in range(self.rounds):
            z = z + i
        z += 1
        z = self.chain(z)
        w = self.fc(z).sum()
        return w, [a, b]


NONE, CHAIN = type(None), nn.SequentialCell
NAMES = (
    "input_x input_y if_node abs binop_mult add binop_add tuple part relu_1 range for_node AugAssign "
    "chain fc sum list tuple_1 return"
).split()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Sources of networks are written below the current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def name(text, scope=""):
    return ScopedValue.create_naming_value(text, scope)


def x():
    return ms.Tensor(np.array([[0.5, -1, 2]], np.float32))


def test_nodes_have_names_in_the_order_of_what_is_computed():
    tree = SymbolTree.create(Net())
    assert [n.get_name() for n in tree.nodes()] == NAMES
    inside = [n.get_name() for n in tree.nodes(all_nodes=True)][len(NAMES) :]
    assert inside == ["relu", "input_x", "relu", "binop_mult", "return", "binop_add_1", "ReLU", "Tanh"]


@pytest.mark.parametrize(
    "node, kind, called, args, targets, inputs, users",
    [
        ("input_x", NodeType.Input, NONE, [], ["x"], [], ["abs", "add", "tuple"]),
        ("if_node", NodeType.ControlFlow, NONE, ["self.early"], [], [], []),
        ("abs", NodeType.CallFunction, ops.abs, ["x"], ["abs_var"], ["input_x"], ["binop_mult"]),
        ("binop_mult", NodeType.MathOps, NONE, ["abs_var", "3"], ["mult_var"], ["abs"], ["binop_add"]),
        (
            "add",
            NodeType.CallPrimitive,
            ops.Add,
            ["x", "y"],
            ["add_var"],
            ["input_x", "input_y"],
            ["binop_add"],
        ),
        ("tuple", NodeType.CallMethod, NONE, ["x", "z"], ["a", "b"], ["input_x", "binop_add"], ["list"]),
        ("part", NodeType.Tree, Part, ["z"], ["part_var"], ["binop_add"], ["relu_1"]),
        ("relu_1", NodeType.CallCell, nn.ReLU, ["part_var"], ["z"], ["part"], ["chain"]),
        ("chain", NodeType.CellContainer, CHAIN, ["z"], ["z"], ["relu_1"], ["fc"]),
        ("sum", NodeType.CallFunction, NONE, [], ["w"], [], ["tuple_1"]),
        ("return", NodeType.Output, NONE, ["tuple_var"], [], ["tuple_1"], []),
    ],
)
def test_what_a_node_tells(node, kind, called, args, targets, inputs, users):
    tree = SymbolTree.create(Net())
    found = tree.get_node(node)
    assert found.get_node_type() is kind and found.get_symbol_tree() is tree
    assert found.get_instance_type() is called
    assert [str(a) for a in found.get_args()] == args
    assert [str(t) for t in found.get_targets()] == targets
    assert [n.get_name() for n in found.get_inputs()] == inputs
    assert [n.get_name() for n in found.get_users()] == users


def test_an_unchanged_network_gives_the_same(folder):
    net = Net(early=True)
    wanted = net(x())
    again = SymbolTree.create(net).get_network()
    assert type(again).__name__ == "NetOpt" and isinstance(again, Net)
    found = again(x())
    np.testing.assert_array_equal(found[0].asnumpy(), wanted[0].asnumpy())
    np.testing.assert_array_equal(found[1][1].asnumpy(), wanted[1][1].asnumpy())
    assert len(list((folder / "rewritten_network").glob("NetOpt_*.py"))) == 1
    assert [p.name for p in again.trainable_params()] == [p.name for p in net.trainable_params()]


class Small(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()

    def construct(self, x):
        y = self.relu(x)
        return y + 1


CODE = """\
class SmallOpt(Small, nn.Cell):

    def __init__(self, obj):
        nn.Cell.__init__(self)
        for key, value in obj.__getstate__().items():
            self.__dict__[key] = dict(value) if key in ('_cells', '_params') else value
        self.tanh = obj.tanh

    def construct(self, x):
        x_1 = abs(x)
        y = self.relu(x_1)
        y = self.tanh(y)
        add_var = y + 1
        return add_var
"""


@pytest.mark.parametrize("compiled", [False, True])
def test_nodes_are_inserted(compiled):
    tree = SymbolTree.create(Small())
    relu = tree.get_node("relu")
    tanh = relu.create_call_cell(nn.Tanh(), targets=["y"], args=[name("y")], name="tanh")
    assert tree.insert(tree.after(relu), tanh) is tanh
    free = tree.unique_name("x")
    absolute = Node.create_call_function(ops.abs, targets=[free], args=[name("x")])
    tree.insert(tree.before("relu"), absolute)
    assert absolute.get_users() == []
    relu.set_arg_by_node(0, absolute)
    assert absolute.get_users() == [relu]
    assert CODE in tree.get_code()
    net = tree.get_network()
    if compiled:
        net = ms.jit(net)
    np.testing.assert_allclose(net(x()).asnumpy(), np.tanh([[0.5, 1, 2]]) + 1, 1e-5)


def test_a_compiled_network_is_not_mistaken_for_the_one_before():
    before = ms.get_context("mode")
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net = Small()
        np.testing.assert_allclose(net(x()).asnumpy(), [[1.5, 1, 3]])
        tree = SymbolTree.create(net)
        tree.get_node("binop_add").set_arg(1, ScopedValue.create_variable_value(10))
        np.testing.assert_allclose(tree.get_network()(x()).asnumpy(), [[10.5, 10, 12]])
    finally:
        ms.set_context(mode=before)


def test_nodes_are_erased_and_replaced():
    tree = SymbolTree.create(Small())
    relu = tree.get_node("relu")
    first = Node.create_call_cell(nn.Sigmoid(), ["s"], [name("x")])
    second = Node.create_call_function(ops.neg, ["y"], [name("s")])
    assert tree.replace(relu, [first, second]) is second
    assert relu.get_symbol_tree() is None and first.get_name() == "Sigmoid"
    np.testing.assert_allclose(tree.get_network()(x()).asnumpy(), 1 - 1 / (1 + np.exp([[-0.5, 1, -2]])), 1e-5)
    gone = tree.erase("binop_add")
    tree.get_node("return").set_arg(0, "y")
    assert gone.get_name() == "binop_add" and tree.get_node("binop_add") is None
    assert (tree.get_network()(x()).asnumpy() < 0).all()


def test_trees_of_parts_and_bodies_can_be_changed():
    net = Net(early=True)
    tree = SymbolTree.create(net)
    part = tree.get_node("part").get_sub_tree()
    part.get_node("binop_mult").set_arg(1, "self.zero")
    net.part.zero = 0.0
    tree.insert(tree.before("relu"), Node.create_call_cell(nn.Tanh(), ["x"], [name("x")], name="squash"))
    code = tree.get_code()
    assert "self.part = PartOpt(self.part)" in code and "        x = self.squash(x)\n" in code
    total, (a, _) = tree.get_network()(x())
    np.testing.assert_allclose(a.asnumpy(), np.maximum(np.tanh([[0.5, -1, 2]]), 0), 1e-5)
    np.testing.assert_allclose(total.asnumpy(), 9 * np.tanh(2.0), 1e-5)


def test_a_new_part_gets_a_tree():
    tree = SymbolTree.create(Small())
    node = Node.create_call_cell(Part(), ["y"], kwargs={"x": name("y")}, name="part", is_sub_net=True)
    tree.insert(tree.after("relu"), node)
    assert node.get_node_type() is NodeType.Tree
    assert {k: str(v) for k, v in node.get_kwargs().items()} == {"x": "y"}
    node.get_sub_tree().erase("relu")
    np.testing.assert_allclose(tree.get_network()(x()).asnumpy(), [[2, 1, 5]])


def test_the_table_of_nodes(capsys):
    SymbolTree.create(Small()).print_node_tabulate()
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "node type name codes arg providers target users"
    assert (
        lines[3] == "NodeType.CallCell relu y = self.relu(x) [[0, ('input_x', 0)]] [[0, [('binop_add', 0)]]]"
    )


def test_scoped_values():
    values = [ScopedValue.create_variable_value(v) for v in (2, "s", None, [1], {"a": 1}, nn.ReLU())]
    assert [v.type for v in values] == [
        *[ValueType.ConstantValue] * 3, ValueType.ListValue, ValueType.DictValue, ValueType.CustomObjValue,
    ]  # fmt: skip
    assert [str(v) for v in values[:3]] == ["2", "s", "None"]
    assert repr(name("conv", "self")) == "self.conv" and name("a") == name("a") != name("b")
    assert [str(v) for v in ScopedValue.create_name_values(["z", "y"], ["self", ""])] == ["self.z", "y"]
    with pytest.raises(ValueError):
        ScopedValue.create_name_values(["z"], ["self", ""])
    with pytest.raises(TypeError):
        ScopedValue.create_naming_value(3)


@pytest.mark.parametrize(
    "call, kind",
    [
        (lambda tree: SymbolTree.create(3), TypeError),
        (lambda tree: tree.nodes(all_nodes=1).__next__(), TypeError),
        (lambda tree: tree.erase(3), TypeError),
        (lambda tree: tree.erase("nothing"), RuntimeError),
        (lambda tree: tree.before(1), TypeError),
        (lambda tree: tree.insert(3, tree.get_node("relu")), TypeError),
        (
            lambda tree: tree.insert(SymbolTree.create(Small()).after("relu"), tree.get_node("relu")),
            ValueError,
        ),
        (lambda tree: tree.replace(3, []), TypeError),
        (lambda tree: tree.replace(tree.get_node("relu"), [3]), TypeError),
        (lambda tree: tree.get_node("relu").set_arg(4, "x"), ValueError),
        (lambda tree: tree.get_node("relu").set_arg("0", "x"), TypeError),
        (lambda tree: tree.get_node("relu").set_arg_by_node(0, tree.get_node("return")), ValueError),
        (lambda tree: tree.get_node("relu").get_sub_tree(), TypeError),
        (lambda tree: tree.unique_name(1), TypeError),
        (lambda tree: Node.create_call_cell(3, ["x"]), TypeError),
        (lambda tree: Node.create_call_cell(nn.ReLU(), "x"), TypeError),
        (lambda tree: Node.create_call_cell(nn.ReLU(), ["x"], args=["x"]), TypeError),
        (lambda tree: Node.create_call_function(3, ["x"]), TypeError),
    ],
)
def test_wrong_arguments(call, kind):
    with pytest.raises(kind):
        call(SymbolTree.create(Small()))
    assert SymbolTree.create(Small()).get_node("nothing") is None
