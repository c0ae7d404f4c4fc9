"""Which names of MindSpore a script uses that are not here, found by reading it, without running it.

Followed are imports and the attributes of what they bind: `ms.ops.add`, `nn.Cell`, `P.Conv2D`. What a value
has (`x.sum()`) is not known before the script runs.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

from mycelia.faces import compat
from mycelia.faces.compat import paths

# Names that nothing replaces one for one -> what to do instead.
_ADVICE = {
    "mindspore.ops.operations.ControlDepend": "order follows from data: y = ops.depend(y, x)",
    "mindspore.ops.ControlDepend": "order follows from data: y = ops.depend(y, x)",
    "mindspore.compression": "quantize with mindspore.nn layers, or with MindSpore Golden Stick",
    "mindspore.explainer": "a project of its own since 1.6: mindspore_xai",
    "mindspore.model_zoo": "the repository mindspore/models",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One use of a name: where, which, what is the matter and what to write instead.

    `kind` is `missing` (name or module), `argument` (a keyword that the function does not take), `renamed`
    (works, as what replaced it) or `syntax`.
    """

    file: str
    line: int
    name: str
    kind: str
    advice: str = ""

    @property
    def is_error(self) -> bool:
        """Whether the script cannot run as it is."""
        return self.kind != "renamed"


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in some files, and how many uses of names were looked at."""

    files: int
    uses: int
    findings: list[Finding]

    @property
    def ok(self) -> bool:
        """Whether nothing stands in the way."""
        return not any(finding.is_error for finding in self.findings)

    def as_dict(self) -> dict:
        """For JSON."""
        return {
            "ok": self.ok,
            "files": self.files,
            "uses": self.uses,
            "findings": [asdict(finding) for finding in self.findings],
        }


def examine(where: Path) -> Report:
    """Examine a script, or all `*.py` files below a folder.

    Errors: FileNotFoundError if there is nothing at `where`.
    """
    if not where.exists():
        raise FileNotFoundError(f"doctor: there is no file and no folder {where}")
    files = sorted(where.rglob("*.py")) if where.is_dir() else [where]
    findings, uses = [], 0
    with compat.active():
        for file in files:
            reader = _Reader(str(file))
            try:
                reader.visit(ast.parse(file.read_text(encoding="utf-8"), str(file)))
            except (SyntaxError, UnicodeDecodeError, ValueError) as cause:
                reader.report(getattr(cause, "lineno", 0) or 0, str(cause).split(" (")[0], "syntax")
            findings += reader.findings
            uses += reader.uses
    return Report(len(files), uses, findings)


def show(report: Report, as_json: bool = False) -> None:
    """Print a report: a table for people, or JSON."""
    if as_json:
        print(json.dumps(report.as_dict(), indent=2))
        return
    from rich.table import Table

    from mycelia.engine.base import terminal

    console = terminal.console()
    if report.findings:
        table = Table("place", "name", "", "advice", box=None, header_style="bold")
        for finding in report.findings:
            place = f"{finding.file}:{finding.line}"
            table.add_row(
                place, finding.name, finding.kind, finding.advice, style=None if finding.is_error else "dim"
            )
        console.print(table)
    errors = sum(finding.is_error for finding in report.findings)
    files = "1 file" if report.files == 1 else f"{report.files} files"
    console.print(f"{files}, {report.uses} uses of MindSpore's names, {errors} in the way.", highlight=False)


class _Missing(Exception):
    """Carries the dotted name that is not here."""


class _Reader(ast.NodeVisitor):
    """Follows what the imports of one file bind."""

    def __init__(self, file: str) -> None:
        self.file, self.findings, self.uses = file, [], 0
        # name -> its full name in MindSpore; None: something else
        self._scopes: list[dict[str, str | None]] = [{}]
        self._seen: set[tuple[int, str]] = set()

    def report(self, line: int, name: str, kind: str, advice: str = "") -> None:
        if (line, name) not in self._seen:
            self._seen.add((line, name))
            self.findings.append(Finding(self.file, line, name, kind, advice))

    # -- what names mean

    def _meaning(self, name: str) -> str | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def visit_Import(self, node: ast.Import) -> None:
        for item in node.names:
            if item.name.split(".")[0] == "mindspore":
                self._check(node.lineno, item.name, is_module=True)
                self._scopes[-1][item.asname or "mindspore"] = item.name if item.asname else "mindspore"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or (node.module or "").split(".")[0] != "mindspore":
            return
        if not self._check(node.lineno, node.module, is_module=True):
            return
        for item in node.names:
            if item.name != "*":
                self._check(node.lineno, f"{node.module}.{item.name}")
                self._scopes[-1][item.asname or item.name] = f"{node.module}.{item.name}"
            else:
                module = importlib.import_module(node.module)
                for name in getattr(module, "__all__", None) or dir(module):
                    self._scopes[-1].setdefault(name, f"{node.module}.{name}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        dotted = self._dotted(node)
        if dotted is None:
            self.generic_visit(node)
        elif isinstance(node.ctx, ast.Load):
            self._check(node.lineno, dotted)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        dotted = self._dotted(node.func)
        if dotted is not None and node.keywords:
            self._check_keywords(node, dotted)

    def _dotted(self, node: ast.AST) -> str | None:
        """The full name in MindSpore that an expression of names and dots stands for, or None."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        meaning = self._meaning(node.id) if isinstance(node, ast.Name) else None
        return meaning and ".".join([meaning, *reversed(parts)])

    # -- scopes

    def _in_scope(self, node, bound: list[str]) -> None:
        self._scopes.append(dict.fromkeys(bound))
        self.generic_visit(node)
        self._scopes.pop()

    def visit_FunctionDef(self, node) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        self._in_scope(node, [a.arg for a in every])

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._in_scope(node, [])

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._scopes[-1][target.id] = self._dotted(node.value)  # `relu = ops.relu` is followed
            else:
                self.visit(target)

    # -- what is here

    def _check(self, line: int, dotted: str, is_module: bool = False) -> bool:
        self.uses += 1
        try:
            _resolve(dotted, is_module)
        except _Missing as missing:
            self.report(line, str(missing), "missing", _advice(str(missing)))
            return False
        new = _replacement(dotted)
        if new:
            self.report(line, dotted, "renamed", f"means {new}")
        return True

    def _check_keywords(self, node: ast.Call, dotted: str) -> None:
        try:
            parameters = inspect.signature(_resolve(dotted)).parameters
        except (_Missing, TypeError, ValueError):
            return
        if not parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in parameters:
                takes = f"it takes {', '.join(parameters)}"
                self.report(node.lineno, f"{dotted}({keyword.arg}=)", "argument", takes)


def _resolve(dotted: str, is_module: bool = False):
    """The object of this name; values are not followed further than to attributes of classes."""
    if is_module:
        try:
            return importlib.import_module(dotted)
        except ModuleNotFoundError as cause:
            raise _Missing(cause.name if (cause.name or "").startswith("mindspore") else dotted) from None
        except Exception:  # a module that cannot be loaded here is missing for the script
            raise _Missing(dotted) from None
    found, name = importlib.import_module("mindspore"), "mindspore"
    for part in dotted.split(".")[1:]:
        name = f"{name}.{part}"
        if not isinstance(found, (ModuleType, type)):
            break
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(name)
            except ImportError:
                raise _Missing(name) from None
        except ImportError:
            raise _Missing(name) from None
    return found


def _replacement(dotted: str) -> str | None:
    """The present name, if the script uses one that was renamed."""
    path, _, name = dotted.partition(".")[2].rpartition(".")
    new = paths.renamed(path, name)
    if new is None or _is_own(path, name):
        return None
    where, colon, target = new.rpartition(":")
    if colon:
        return target if where.startswith("compat") else f"{where}.{target}".lstrip(".")
    return f"mindspore.{path}.{target}" if path else f"mindspore.{target}"


def _is_own(path: str, name: str) -> bool:
    return any(name in dir(module) for module in compat.own_modules(path))


def _advice(dotted: str) -> str:
    for known, advice in _ADVICE.items():
        if dotted == known or dotted.startswith(known + "."):
            return advice
    path, _, name = dotted.partition(".")[2].rpartition(".")
    names = {n for module in compat.own_modules(path) for n in dir(module) if not n.startswith("_")}
    near = difflib.get_close_matches(name, sorted(names), n=2, cutoff=0.75)
    return f"near: {', '.join(near)}" if near else ""
