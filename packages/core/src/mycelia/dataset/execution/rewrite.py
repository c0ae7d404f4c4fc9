"""What becomes of a pipeline before it is read: a copy of its nodes, which rewriters may change.

A rewriter is a function ``rewriter(root, run) -> root``. It gets the copy (so it may set attributes, put
nodes between others or replace some) and the `Run` that will read it, and gives the root that is read.
Rewriters run in the order in which they were added; the exchange of cached nodes (cache.py) is the first.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

from mycelia.dataset import cache

if TYPE_CHECKING:
    from mycelia.dataset.execution.run import Run
    from mycelia.dataset.pipeline import Dataset

_rewriters: list[Callable[[Dataset, Run], Dataset]] = [lambda root, run: cache.rewritten(root)]


def add(rewriter: Callable[[Dataset, Run], Dataset]) -> None:
    """Let a function change every pipeline before it is read."""
    if rewriter not in _rewriters:
        _rewriters.append(rewriter)


def executable(root: Dataset, run: Run) -> Dataset:
    """The nodes that `run` reads in place of `root` and all below it, which stay as they are."""
    tree = _copied(root, run, {})
    for rewriter in _rewriters:
        tree = rewriter(tree, run)
    for node in {id(n): n for n in tree.walk()}.values():
        if node.passes != 1:
            for below in {id(n): n for n in node.children[0].walk()}.values():
                below.passes_above *= node.passes
    return adopt(tree, run)


def adopt(root: Dataset, run: Run) -> Dataset:
    """Give a node made by a rewriter, and all below it, to the run."""
    for node in root.walk():
        node._run = run
    return root


def _copied(node: Dataset, run: Run, made: dict[int, Dataset]) -> Dataset:
    if id(node) not in made:
        node.prepare()
        clone = made[id(node)] = copy.copy(node)
        # The random numbers of a node do not change when a rewriter puts others below it.
        clone._salt = node.salt()
        clone.passes_above = 1
        clone.children = [_copied(child, run, made) for child in node.children]
        clone.parent = []
        for child in clone.children:
            child.parent.append(clone)
    return made[id(node)]
