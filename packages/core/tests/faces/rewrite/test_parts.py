"""rewrite: called functions, containers, branches, classes and patterns; names as MindSpore forms them."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn, ops
from mycelia.rewrite import (
    Node,
    NodeType,
    PatternEngine,
    PatternNode,
    Replacement,
    ScopedValue,
    SymbolTree,
    VarNode,
)

STEP = 2.0


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Sources of networks are written below the current folder."""
    monkeypatch.chdir(tmp_path)


def name(text, scope=""):
    return ScopedValue.create_naming_value(text, scope)


def names(nodes):
    return [node.get_name() for node in nodes]


def x():
    return ms.Tensor(np.array([[0.5, -1, 2]], np.float32))


def check(tree, wanted):
    np.testing.assert_allclose(tree.get_network()(x()).asnumpy(), wanted, 1e-5, 1e-6)


def shifted(x):
    return ops.abs(x) + STEP


def down(x, n):
    if n == 0:
        return x
    x = up(x, n)
    return x


def up(x, n):
    y = down(x, n - 1)
    return y


class Base(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()
        self.__hidden = 3.0

    def construct(self, x):
        return self.relu(x)

    def twice(self, x):
        return self.relu(x) * self.__hidden


class Calls(Base):
    def __init__(self):
        super().__init__()
        self.tanh = nn.Tanh()

    def construct(self, x):
        x = super().construct(x)
        x = shifted(x)
        x = down(x, 2)
        double = ops.Neg()
        x = double(x)
        return self.half(self.twice(x))

    @staticmethod
    def half(x: ms.Tensor) -> ms.Tensor:
        return x / STEP


def test_functions_and_methods_have_nodes():
    tree = SymbolTree.create(Calls())
    wanted = Calls()(x()).asnumpy()
    code = tree.get_code()
    for line in (
        "class CallsOpt(Calls, BaseOpt):",
        "class BaseOpt(Base, nn.Cell):",
        "def half(x):",
        "@staticmethod",
    ):
        assert code.count(line) == 1
    assert code.count("def shifted(x):") == code.count("def up(x, n):") == code.count("def down(x, n):") == 1
    check(tree, wanted)
    node = tree.get_node("double")
    assert node.get_node_type() is NodeType.CallPrimitive and node.get_instance_type() is ops.Neg
    inside = tree.get_node("shifted").get_handler()
    assert [n.get_name() for n in inside.nodes()] == ["input_x_1", "abs", "binop_add", "return"]
    assert inside.get_node("abs") == Node(inside.get_node("abs")).get_handler()
    Node(inside.get_node("binop_add")).set_arg(1, ScopedValue.create_variable_value(5))
    assert "add_var = abs_var + 5" in tree.get_code()
    with pytest.raises(TypeError):  # there is no self
        tree.insert(tree.after("abs"), Node.create_call_cell(nn.ReLU(), ["abs_var"], [name("abs_var")]))
    tree.insert(tree.after("abs"), Node.create_call_function(ops.square, ["abs_var"], [name("abs_var")]))
    method = tree.get_node("twice").get_handler()
    relu = Node(method.get_node("relu"))
    tree.insert(tree.before(relu), Node.create_call_cell(nn.Tanh(), ["x"], [name("x")], name="squash"))
    values = np.maximum(x().asnumpy(), 0) ** 2 + 5
    check(tree, np.maximum(np.tanh(-values), 0) * 3 / 2)


class Part(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.relu(x)


class Holder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.blocks = nn.CellList([nn.ReLU(), nn.Tanh(), Part()])
        self.chain = nn.SequentialCell([nn.ReLU(), Part()])

    def construct(self, x):
        for block in self.blocks:
            x = block(x)
        return self.chain(x)


def test_cells_of_containers_are_inserted_erased_and_replaced():
    network = Holder()
    tree = SymbolTree.create(network)
    cells = ["ReLU", "Tanh", "Part"]
    assert names(tree.nodes()) == ["input_x", "self.blocks", "for_node", "chain", "return"]
    blocks = tree.get_node("self.blocks").get_handler()
    assert [n.get_name() for n in blocks.node_list] == cells
    assert tree.get_node("self.blocks").get_node_type() is NodeType.CellContainer
    assert tree.get_node("Part").get_sub_tree().get_handler() == blocks.node_list[2].symbol_tree
    new = Node.create_call_cell(nn.Sigmoid(), ["x"], [name("x")], name="new")
    tree.insert(tree.after("ReLU"), new)
    tree.erase("Tanh")
    tree.replace(
        tree.get_node("ReLU"), [Node.create_call_cell(nn.Softsign(), ["x"], [name("x")], name="soft")]
    )
    assert [n.get_name() for n in blocks.node_list] == ["soft", "new", "Part"]
    squash = Node.create_call_cell(nn.Tanh(), ["x"], [name("x")], name="squash")
    tree.get_node("Part").get_sub_tree().insert(tree.get_node("Part").get_sub_tree().before("relu"), squash)
    code = tree.get_code()
    for line in (
        "self.blocks[2] = PartOpt(self.blocks[2])",
        "self.blocks.insert(1, self.new)",
        "del self.blocks[2]",
        "del self.blocks[0]",
        "self_blocks = self.blocks",
        "for block in self_blocks:",
    ):
        assert code.count(line) == 1, line
    values = x().asnumpy()
    values = np.tanh(1 / (1 + np.exp(-values / (1 + np.abs(values)))))
    check(tree, values)
    check(tree, values)  # the network that it is made of has its cells still
    assert [type(c) for c in network.blocks] == [nn.ReLU, nn.Tanh, Part]


class Branches(nn.Cell):
    MODE = "fast"

    def __init__(self):
        super().__init__()
        self.relu, self.tanh, self.flag = nn.ReLU(), nn.Tanh(), True

    def construct(self, x):
        if self.flag and Branches.MODE == "fast":
            x = self.relu(x)
        elif self.flag:
            x = self.tanh(x)
        else:
            x = x * 2
        if x.sum() > 0:
            x = x + 1
        while x.sum() < 0:
            x += 1
        else:
            x = x - 1
        return x


def test_else_has_a_node_of_its_own():
    tree = SymbolTree.create(Branches())
    wanted = "input_x boolop_and if_node else_node sum compare_gt if_node_2 while_node while_else_node return"
    assert names(tree.nodes()) == wanted.split()
    assert names(tree.get_node("else_node").body) == ["if_node_1", "else_node_1"]
    check(tree, np.maximum(x().asnumpy(), 0))
    tree.erase("while_node")
    assert "while x.sum() < 0:\n            pass\n        else:" in tree.get_code()
    tree.erase("while_else_node")
    tree.erase("if_node_2")
    tree.erase("if_node")
    assert "if and_var:\n            pass\n        elif self.flag:" in tree.get_code()


def test_known_branches_are_flattened():
    tree = SymbolTree.create(Branches())
    tree.flatten_static_if_control_flow()
    code = tree.get_code()
    assert "self.relu(x)" in code and "self.tanh" not in code and "x * 2" not in code
    assert code.count("\n        if ") == 1 and "if gt_var:" in code  # that depends on x
    check(tree, np.maximum(x().asnumpy(), 0))


class Chain(nn.Cell):
    def __init__(self):
        super().__init__()
        self.relu1, self.relu2, self.tanh, self.add = nn.ReLU(), nn.ReLU(), nn.Tanh(), ops.Add()

    def construct(self, x):
        y = self.tanh(x)
        y = self.relu1(y)
        z = self.tanh(x)
        z = self.relu2(z)
        return self.add(z, y)


class ToSigmoid(Replacement):
    def build(self, pattern, is_chain_pattern, matched):
        assert is_chain_pattern and pattern.type() is nn.ReLU
        relu, tanh = matched[pattern.name()], matched[pattern.get_inputs()[0].name()]
        first = Node.create_call_cell(nn.Sigmoid(), ["s"], tanh.get_args())
        return [first, Node.create_call_function(ops.neg, relu.get_targets(), [name("s")])]


def test_a_chain_is_replaced_wherever_it_is():
    tree = SymbolTree.create(Chain())
    assert PatternEngine([nn.Tanh, nn.ReLU], ToSigmoid()).apply(tree)
    assert names(tree.nodes()) == ["input_x", "Sigmoid", "neg", "Sigmoid_1", "neg_1", "add", "return"]
    check(tree, -2 / (1 + np.exp(-x().asnumpy())))
    assert not PatternEngine([nn.Tanh, nn.ReLU], ToSigmoid()).apply(tree)


class Sum(Replacement):
    def build(self, pattern, is_chain_pattern, matched):
        assert not is_chain_pattern
        return [
            Node.create_call_function(ops.sub, matched["add"].get_targets(), matched["left"].get_args() * 2)
        ]


def test_a_pattern_with_several_inputs():
    left = PatternNode("left", nn.ReLU, [VarNode()])
    pattern = PatternNode("add", ops.Add)
    pattern.set_inputs([left, VarNode()])
    tree = SymbolTree.create(Chain())
    assert PatternEngine(pattern, Sum()).apply(tree)
    assert "relu2" not in names(tree.nodes()) and "relu1" in names(tree.nodes())
    check(tree, np.zeros((1, 3)))
    with pytest.raises(TypeError):
        PatternEngine(3)


def test_what_is_used_elsewhere_is_not_replaced():
    tree = SymbolTree.create(Chain())
    tree.get_node("relu2").set_arg_by_node(0, tree.get_node("tanh"), 0)
    tree.get_node("tanh").statement.targets[0].id = "t"
    for node in ("relu1", "relu2"):
        tree.get_node(node).set_arg(0, "t")
    assert not PatternEngine([nn.Tanh, nn.ReLU], ToSigmoid()).apply(tree)


def test_arguments_and_outputs():
    tree = SymbolTree.create(Holder())
    more = Node.create_input("scale", ScopedValue.create_variable_value(2.0))
    tree.insert(tree.after(tree.get_inputs()[-1]), more)
    product = Node.create_call_function(ops.mul, ["product"], [name("chain_var"), name("scale")])
    tree.insert(tree.after("chain"), product)
    assert tree.set_output(0, "product").get_args() == [name("product")]
    assert "def construct(self, x, scale=2.0):" in tree.get_code()
    values = np.tanh(np.maximum(x().asnumpy(), 0))
    check(tree, values * 2)
    tree.get_node("mul").get_handler().append_kwarg({"other": name("x")})
    assert "ops" not in str(tree.get_node("mul").get_kwargs()) and "other=x" in tree.get_node("mul").code()
    tree.get_node("chain").set_attribute("seen", 1)
    assert tree.get_node("chain").get_attributes() == {"seen": 1}
    with pytest.raises(RuntimeError):
        tree.insert(tree.before("input_x"), Node.create_call_function(ops.neg, ["x"], [name("x")]))
    with pytest.raises(RuntimeError):
        tree.set_output(1, "x")


def test_the_source_is_saved(tmp_path):
    tree = SymbolTree.create(Holder())
    assert tree.get_saved_file_name() == "holder.py" and tree.get_origin_network().blocks is not None
    tree.set_saved_file_name(str(tmp_path / "made"))
    tree.save_network_to_file()
    assert (tmp_path / "made.py").read_text() == tree.get_code()
