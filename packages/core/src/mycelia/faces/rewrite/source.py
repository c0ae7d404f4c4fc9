"""Networks as source code, and the classes that it makes."""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import sys
from pathlib import Path
from types import ModuleType

from mycelia.faces.rewrite.flatten import unique
from mycelia.faces.rewrite.nodes import NodeType, statements
from mycelia.faces.rewrite.scopes import Function, is_users
from mycelia.nn import Cell

FOLDER = "rewritten_network"  # where the source of a network is kept, for those who read or debug it
_numbers = itertools.count(1)
_HEAD = ["import sys", "from mycelia import nn"]
_COPIED = "from mycelia.faces.rewrite.source import copied"


def copied(cells):
    """A container of the same cells, so that those of the network before stay as they are."""
    made = copy.copy(cells)
    if isinstance(made, Cell):
        made.__dict__["_cells"] = dict(cells._cells)
    return made


class Writer:
    """The source of a tree: what it imports, its functions, and a class for each network."""

    def __init__(self, tree):
        self._tree = tree
        self._meanings: dict[str, object] = {}  # name -> what the source imports under it
        self._taken = {"sys", "nn", "copied"}
        self._functions: dict[object, str] = {}
        self._classes: dict[str, str] = {}
        self._parts: list[str] = []
        self._copies = False
        self._name = self._class(tree)

    def text(self) -> str:
        """The whole source."""
        lines = [*_HEAD, *([_COPIED] if self._copies else [])]
        lines += [_import(name, value) for name, value in sorted(self._meanings.items())]
        return "\n".join(lines) + "\n\n\n" + "\n\n".join(self._parts)

    def network(self) -> Cell:
        """An object of the class for the whole network."""
        code = self.text()
        module = ModuleType(f"{self._name}_{next(_numbers)}")
        path = Path(FOLDER, f"{module.__name__}.py").absolute()
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, encoding="utf-8")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # the source of its functions is looked for there
        local = {n: v for n, v in self._meanings.items() if _import(n, v).startswith("#")}
        vars(module).update(local)
        exec(compile(code, str(path), "exec"), vars(module))
        return getattr(module, self._name)(self._tree.get_origin_network())

    # -- classes

    def _class(self, tree) -> str:
        network = tree.get_origin_network()
        kind = type(network)
        made = [line for kept in tree.containers.values() for line in self._container(tree, kept)]
        for function in (tree.main, *tree.methods()):
            made += [self._wrapped(n) for n in function.body.flat() if self._is_field(n)]
        added = [f"self.{name} = obj.{name}" for name in tree.added]
        fields = [line for line in dict.fromkeys(made) if not line.startswith("self.") or "=" in line]
        edits = [line for kept in tree.containers.values() for line in kept.edits]
        functions: dict[type | None, list[Function]] = {}
        for function in (tree.main, *tree.methods()):
            functions.setdefault(function.owner, []).append(function)
        body = [
            "def __init__(self, obj):",
            "    nn.Cell.__init__(self)",
            "    for key, value in obj.__getstate__().items():",
            "        self.__dict__[key] = dict(value) if key in ('_cells', '_params') else value",
            *(f"    {line}" for line in [*added, *fields, *edits]),
        ]
        return self._write(kind, body, functions)

    def _write(self, kind: type, body: list[str], functions: dict) -> str:
        """A class made from `kind`, with the functions that `kind` defines; its parents are made likewise."""
        parents = [p for p in kind.__bases__ if p is not object and is_users(p)]
        bases = [self._refer(kind.__name__, kind), *(self._write(p, [], functions) for p in parents)]
        if issubclass(kind, Cell) and kind is not Cell and not any(issubclass(p, Cell) for p in parents):
            bases.append("nn.Cell")
        for function in functions.get(kind, ()):
            body = [*body, "", *self._definition(function).splitlines()]
        text = "".join(f"    {line}\n" if line else "\n" for line in body or ["pass"])
        key = f"({', '.join(bases)}):\n\n{text}"
        if key not in self._classes:
            self._classes[key] = name = unique(f"{kind.__name__}Opt", self._taken)
            self._parts.append(f"class {name}{key}")
        return self._classes[key]

    @staticmethod
    def _is_field(node) -> bool:
        called = getattr(getattr(node.statement, "value", None), "func", None)
        return node.kind is NodeType.Tree and isinstance(called, ast.Attribute)

    def _wrapped(self, node) -> str:
        field = ast.unparse(node.statement.value.func)
        return f"{field} = {self._class(node.sub_tree)}({field})"

    def _container(self, tree, kept) -> list[str]:
        """What is done to a container before its edits: networks in it get their new classes."""
        trees = [
            f"{kept.path}[{place}] = {self._class(cell.sub_tree)}({kept.path}[{place}])"
            for place, cell in enumerate(kept.first)
            if cell.sub_tree is not None
        ]
        new = [n for n in tree.added.values() if n.block is kept.cells and n.sub_tree is not None]
        trees += [f"self.{n.name} = {self._class(n.sub_tree)}(self.{n.name})" for n in new]
        if not trees and not kept.edits:
            return []
        self._copies = True
        return [f"{kept.path} = copied({kept.path})", *trees]

    # -- functions

    def _function(self, function: Function) -> str:
        """The name of a function of the source; one for all trees where it is as it was."""
        key = id(function) if function.is_changed() else function.value
        if key not in self._functions:
            self._functions[key] = name = unique(function.definition.name, self._taken)
            text = self._definition(function, name)
            self._parts.append(text + "\n")
        return self._functions[key]

    def _definition(self, function: Function, name: str | None = None) -> str:
        definition = copy.copy(function.definition)
        definition.name = name or definition.name
        definition.body = copy.deepcopy(statements(function.body)) or [ast.Pass()]
        definition.args = copy.deepcopy(definition.args)
        definition.returns = None
        definition.decorator_list = [ast.Name("staticmethod", ast.Load())] if function.is_static else []
        whole = _Names(self, function).visit(definition)
        return ast.unparse(ast.fix_missing_locations(whole))

    def _refer(self, name: str, value) -> str:
        """The name under which the source has `value`."""
        for taken, known in self._meanings.items():
            if known is value and taken.rstrip("_0123456789") == name.rstrip("_0123456789"):
                return taken
        name = "nn" if name == "nn" and value is sys.modules.get("mycelia.nn") else unique(name, self._taken)
        if name != "nn":
            self._meanings[name] = value
        return name


class _Names(ast.NodeTransformer):
    """Lets the names of a function mean in the source what they meant where it was written."""

    def __init__(self, writer: Writer, function: Function):
        self._writer, self._function = writer, function
        definition = function.definition
        stored = (n.id for n in ast.walk(ast.Module(statements(function.body), [])) if _is_store(n))
        arguments = (a.arg for a in ast.walk(definition.args) if isinstance(a, ast.arg))
        self._own = {*stored, *arguments}
        self._called = {}
        for node in function.body.flat():
            called = getattr(getattr(node.statement, "value", None), "func", None)
            if node.function is not None and node.function.owner is None and isinstance(called, ast.Name):
                self._called[called.id] = node.function

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        return ast.Assign([self.visit(node.target)], self.visit(node.value))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        owner = self._function.owner
        if owner is not None and node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = (
                f"_{owner.__name__.lstrip('_')}{node.attr}"  # the class of the source has another name
            )
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        owner = self._function.owner
        if (
            owner is not None
            and isinstance(node.func, ast.Name)
            and node.func.id == "super"
            and not node.args
        ):
            base = self._writer._refer(owner.__name__, owner)
            node.args = [ast.Name(base, ast.Load()), ast.Name("self", ast.Load())]
            return node
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._own:
            return node
        if node.id in self._called:
            return ast.Name(self._writer._function(self._called[node.id]), node.ctx)
        value = self._function.resolve(ast.Name(node.id, ast.Load()))
        if value is None or getattr(builtins, node.id, None) is value:
            return node
        return ast.Name(self._writer._refer(node.id, value), node.ctx)


def _is_store(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _import(name: str, value) -> str:
    """The line that makes `name` mean `value`; a comment if no module has it."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    own = getattr(value, "__name__", None) or getattr(value, "name", name)
    for module in (getattr(value, "__module__", None), "mycelia.engine.ops", "mycelia.faces.mint"):
        home = sys.modules.get(module)
        for there in (name, own):
            if home is not None and isinstance(there, str) and getattr(home, there, None) is value:
                return f"from {module} import {there}" + ("" if there == name else f" as {name}")
    return f"# {name}: {type(value).__name__}, defined where the network is made"
