"""How much of MindSpore's public interface is here: names, signatures, tests, by tier and by module.

    python tools/api_coverage.py [surface.json] [--missing] [--no-page]

Without an argument the names come from docs/api-surface.tsv.gz: name, kind, tier, signature and further
call forms of MindSpore 2.10, one a line; `--keep` writes that file from a surface.json. The page
docs/api-coverage.md is written anew. Tiers: T0 what everyone uses, T1 what tutorials use, T2 what else runs
on CPU, T3 the rest.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import importlib
import inspect
import json
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
SURFACE = ROOT / "docs" / "api-surface.tsv.gz"
PAGE = ROOT / "docs" / "api-coverage.md"
TIERS = ("T0", "T1", "T2", "T3")
TARGET = {"T0": 100.0, "T1": 100.0, "T2": 95.0}  # percent of names


@dataclass(slots=True)
class Entry:
    """One public name: what MindSpore says about it, and what was found here."""

    name: str
    kind: str
    tier: str
    signatures: list[str]
    present: bool = False
    compatible: bool = False
    tested: bool = False
    module: str = field(init=False)

    def __post_init__(self) -> None:
        parts = self.name.split(".")
        upper = next(
            (i for i, p in enumerate(parts) if p[:1].isupper() and i < len(parts) - 1), len(parts) - 1
        )
        self.module = ".".join(parts[:upper])


def read(path: Path) -> list[Entry]:
    """The names of surface.json, or of the compact table."""
    if path.suffix == ".json":
        rows = json.loads(path.read_text())
        return [Entry(r["name"], r["kind"], r["tier"], [r["sig"], *r.get("overloads", [])]) for r in rows]
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [Entry(name, kind, tier, signatures) for name, kind, tier, *signatures in rows]


def keep(entries: list[Entry]) -> None:
    """Write the compact table. No time stamp: the same names give the same file."""
    text = "".join("\t".join([e.name, e.kind, e.tier, *e.signatures]) + "\n" for e in entries)
    SURFACE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def find(name: str):
    """The object of this name in the live package; LookupError if it is not there."""
    parts = ["mycelia", *name.split(".")[1:]]
    found, path = importlib.import_module(parts[0]), parts[0]
    for part in parts[1:]:
        path = f"{path}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(path)
            except ImportError:
                raise LookupError(path) from None
    return found


# -- signatures


def parameters(signature: str) -> list[tuple[str, str | None]] | None:
    """Names (starred as in the source) and texts of defaults, or None, of `(a, b=1, *c)`; None if unknown."""
    text = re.sub(r"<[^<>]*>", "0", signature.partition(" -> ")[0])  # defaults that are objects
    try:
        arguments = ast.parse(f"def f{text}: pass").body[0].args
    except SyntaxError:
        return None
    positional = [*arguments.posonlyargs, *arguments.args]
    gap = len(positional) - len(arguments.defaults)
    defaults = [None] * gap + [ast.unparse(d) for d in arguments.defaults]
    rows = list(zip((a.arg for a in positional), defaults))
    if arguments.vararg:
        rows.append(("*" + arguments.vararg.arg, None))
    for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        rows.append((a.arg, None if default is None else ast.unparse(default)))
    if arguments.kwarg:
        rows.append(("**" + arguments.kwarg.arg, None))
    return rows


def own_parameters(thing, is_method: bool) -> list[tuple[str, str | None]] | None:
    """The same of an object here; without the tensor or object that a method is called on."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    rows = []
    for p in signature.parameters.values():
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        rows.append((star + p.name, None if p.default is p.empty else str(p.default)))
    bound = not is_method or inspect.ismethod(thing) or rows[:1] == [("*args", None)]
    return rows if bound else rows[1:]


def is_static(name: str) -> bool:
    """Whether this method is called without an object."""
    owner, _, last = name.rpartition(".")
    return isinstance(inspect.getattr_static(find(owner), last, None), staticmethod)


def compatible(theirs: list, ours: list | None) -> bool:
    """Whether every call that `theirs` allows is understood the same way by `ours`.

    The same names in the same order, with a default wherever there is one; more parameters with defaults may
    follow, and `*args, **kwargs` stand for anything. Only plain defaults are compared.
    """
    if ours is None:
        return True  # native: the generic tests call it
    free = [n for n, _ in ours if n.startswith("*")]
    named = [(n, d) for n, d in ours if not n.startswith("*")]
    wanted = [(n, d) for n, d in theirs if not n.startswith("*") and n != "self"]
    if not wanted:
        return True
    anything = any(n.startswith("**") for n in free)
    for i, (name, default) in enumerate(wanted):
        if i >= len(named):
            return anything
        own_name, own_default = named[i]
        if own_name != name and not re.fullmatch(r"arg\d+", name):  # a native parameter has no name
            return anything or (name in dict(named) and bool(free))
        if default is not None and not _same_default(default, own_default):
            return False
    return all(default is not None for _, default in named[len(wanted) :])


def _same_default(theirs: str, ours: str | None) -> bool:
    if ours is None:
        return False
    try:
        a = ast.literal_eval(theirs)
    except (ValueError, SyntaxError):
        return True  # an object: any default will do
    try:
        return a == ast.literal_eval(ours) or (a is None) == (ours == "None") and ours.startswith("<")
    except (ValueError, SyntaxError):
        return str(a) == ours or ours.startswith("<")


# -- tests


def words_of_tests() -> set[str]:
    """Every identifier in a test file, also in strings: names of ops stand in tables."""
    found: set[str] = set()
    folders = [*sorted((ROOT / "packages").glob("*/tests")), ROOT / "tests", ROOT / "examples"]
    for folder in folders:
        for file in folder.rglob("*.py"):
            found.update(re.findall(r"[A-Za-z_]\w*", file.read_text(encoding="utf-8")))
    return found


def judge(entries: list[Entry]) -> None:
    """Fill in what is here."""
    words = words_of_tests()
    for entry in entries:
        try:
            thing = find(entry.name)
        except LookupError:
            continue
        except Exception as cause:  # a name whose module cannot be loaded is not there
            print(f"{entry.name}: {cause!r}", file=sys.stderr)
            continue
        entry.present = True
        known = [p for p in map(parameters, entry.signatures) if p is not None]
        callable_kind = entry.kind in ("function", "method", "class")
        is_method = entry.kind == "method" and not is_static(entry.name)
        ours = own_parameters(thing, is_method) if callable_kind and known else None
        entry.compatible = not callable_kind or not known or any(compatible(p, ours) for p in known)
        entry.tested = entry.name.rpartition(".")[2] in words


# -- reports


def percent(part: int, whole: int) -> str:
    """`97.3`, rounded down: 100 means all."""
    return f"{int(1000 * part / whole) / 10:.1f}" if whole else "-"


def rows_of(groups: dict[str, list[Entry]]) -> list[list[str]]:
    """A row for each group: how many names, and how many percent are present, compatible, tested."""
    rows = []
    for name, group in groups.items():
        total = len(group)
        counts = [sum(getattr(e, what) for e in group) for what in ("present", "compatible", "tested")]
        rows.append([name, str(total), *(percent(count, total) for count in counts)])
    return rows


def by(entries: list[Entry], key) -> dict[str, list[Entry]]:
    """Groups in order of their names."""
    groups = defaultdict(list)
    for entry in entries:
        groups[key(entry)].append(entry)
    return dict(sorted(groups.items()))


def page(entries: list[Entry]) -> str:
    """The page of the docs."""
    head = "| {} | names | present % | signature % | tested % |\n| --- | --- | --- | --- | --- |\n"
    table = "| {} |\n"

    def render(title: str, groups) -> str:
        return head.format(title) + "".join(table.format(" | ".join(row)) for row in rows_of(groups))

    usual = [e for e in entries if e.tier != "T3"]
    missing = by([e for e in usual if not e.present], lambda e: e.module)
    parts = [
        "# API coverage\n\n"
        "Written by `python tools/api_coverage.py`, which compares the live package with the public names\n"
        "of MindSpore 2.10. *Signature*: every call that MindSpore's signature allows is understood here.\n"
        "*Tested*: the name occurs in a test. T0 is what everyone uses, T1 what tutorials use, T2 what else\n"
        "runs on CPU, T3 the rest: names for other devices, undocumented helpers, deprecated ones.\n\n",
        render("tier", by(entries, lambda e: e.tier)),
        "\n## By module (T0 to T2)\n\n",
        render("module", by(usual, lambda e: e.module)),
        "\n## Missing (T0 to T2)\n\n",
        "".join(
            f"* {module}: {', '.join(_last(e, module) for e in group)}\n" for module, group in missing.items()
        )
        or "Nothing.\n",
    ]
    return "".join(parts)


def _last(entry: Entry, module: str) -> str:
    return f"`{entry.name[len(module) + 1 :]}`"


def show(entries: list[Entry], with_missing: bool) -> None:
    """The same on the terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 140)
    for title, groups in (
        ("tier", by(entries, lambda e: e.tier)),
        ("module", by(entries, lambda e: e.module)),
    ):
        table = Table(title, "names", "present %", "signature %", "tested %", box=None)
        for row in rows_of(groups):
            table.add_row(*row)
        console.print(table, "")
    if with_missing:
        for entry in entries:
            if not entry.present or not entry.compatible:
                print(
                    entry.tier,
                    entry.name,
                    "missing" if not entry.present else f"signature {entry.signatures}",
                )


def main() -> int:
    """0 if the targets are met, else 1."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("surface", nargs="?", type=Path, default=SURFACE)
    parser.add_argument(
        "--missing", action="store_true", help="list what is missing or has another signature"
    )
    parser.add_argument("--no-page", action="store_true", help="do not write docs/api-coverage.md")
    parser.add_argument("--keep", action="store_true", help="keep the names in docs/api-surface.tsv.gz")
    options = parser.parse_args()
    entries = read(options.surface)
    if options.keep:
        keep(entries)
    judge(entries)
    show(entries, options.missing)
    if not options.no_page:
        PAGE.write_text(page(entries), encoding="utf-8")
    short = [
        tier
        for tier, group in by(entries, lambda e: e.tier).items()
        if 100 * sum(e.present for e in group) < TARGET.get(tier, 0) * len(group)
    ]
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
