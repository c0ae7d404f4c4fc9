"""Parts of a program that run at the same time: where a graph is wide and its ops are too small to be split.

Between a fork and the join behind it, kernels fall into components that do not depend on each other. A window
of the order is worth threads if its components, dealt out to tasks, end sooner than one after another. An
op that is large enough to use all threads by itself is left alone.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from mycelia.engine import _C
from mycelia.engine.base import config
from mycelia.engine.compile import cost_model
from mycelia.engine.compile.draft import Draft, Window, reorder
from mycelia.engine.ir.graph import Graph, Node, Value

_KERNEL, _VIEW = 0, 1  # kinds of Plan

# Nanoseconds, as in `cost_model.py`.
_VIEWING = 3.0
_LARGE = 80_000.0  # the op uses all threads itself
_HANDOVER = 8_000.0  # until another thread works, and until it is known that it is done
_GAIN = 10_000.0
_LONGEST = 48  # nodes of a window


def threads() -> int:
    """Threads that programs and kernels may use under the present settings."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return config.get("runtime_num_threads") or cores


def side_by_side() -> int:
    """Nodes of a program that may run at the same time."""
    if config.get("pynative_synchronize"):
        return 1
    most = threads()
    return min(config.get("inter_op_parallel_num") or most, most)


def run(graph: Graph, draft: Draft) -> int:
    """Returns how many nodes moved and windows were found."""
    with draft.estimating():
        nodes, draft.windows = arrange(
            graph.nodes, draft.plans.get, draft.seen(), side_by_side(), draft.in_place
        )
    return reorder(graph, nodes) + len(draft.windows)


def arrange(
    nodes: Sequence[Node],
    plan_of: Callable[[Node], _C.Plan | None],
    outside: set[Value],
    threads: int,
    in_place: Collection[Value] = (),
) -> tuple[list[Node], list[Window]]:
    """The nodes with the tasks of each window one behind the other, and the windows in order.

    `outside`: values that others than kernels get. A view that is one of them is an instruction of its own,
    so it runs behind the window. `in_place`: values that are written over a parameter, which others read.
    """
    order = list(nodes)
    if threads < 2:
        return order, []
    alone = {v.producer for v in in_place}
    prices = [None if node in alone else _nanoseconds(node, plan_of(node)) for node in order]
    uses = Counter(v for node in order for v in set(node.inputs) if v is not None)
    windows: list[Window] = []
    begin = 0
    while begin < len(order):
        found = None
        if prices[begin] and any(uses[v] > 1 for v in order[begin].inputs if v is not None):
            found = _widest(order, prices, begin, outside, threads)
        if found is None:
            begin += 1
            continue
        tasks, later = found
        moved = [n for task in tasks for n in task] + later
        price_of = dict(zip(order[begin:], prices[begin:]))
        order[begin : begin + len(moved)] = moved
        prices[begin : begin + len(moved)] = [price_of[n] for n in moved]
        ends = list(itertools.accumulate(map(len, tasks), initial=begin))
        windows.append(Window(begin, ends[-1], tuple(ends[1:])))
        begin = ends[-1]
    return order, windows


def _nanoseconds(node: Node, plan: _C.Plan | None) -> float | None:
    """What a node costs; None for one that has to run alone."""
    definition = node.op.definition
    if plan is None or plan.kind not in (_KERNEL, _VIEW) or definition.updates or definition.effect:
        return None
    if plan.kind == _VIEW:
        return _VIEWING
    spent = cost_model.nanoseconds(node)
    return spent if spent is not None and spent < _LARGE else None


def _widest(
    order: Sequence[Node],
    prices: Sequence[float | None],
    begin: int,
    outside: set[Value],
    threads: int,
) -> tuple[list[list[Node]], list[Node]] | None:
    """Tasks of the window from `begin` on that saves most, and nodes among them that run after it: those
    that join what is long enough to be apart, views that leave, and what depends on them."""
    component: dict[Node, int] = {}
    members: dict[int, list[Node]] = {}
    total: dict[int, float] = {}
    later: list[Node] = []
    made: dict[Value, Node | None] = {}  # None: by a node that runs later
    best, most = None, _GAIN
    for position in range(begin, min(len(order), begin + _LONGEST)):
        node, price = order[position], prices[position]
        if price is None:
            break
        sources = {made[v] for v in node.inputs if v in made}
        joined = {component[n] for n in sources if n is not None}
        leaves = node.op.definition.view and node.outputs[0] in outside
        if leaves or None in sources or sum(total[c] > _HANDOVER for c in joined) > 1:
            later.append(node)
            made.update((v, None) for v in node.outputs)
            continue
        home = min(joined, default=position)
        for other in joined - {home}:
            for member in members[other]:
                component[member] = home
            members[home] += members.pop(other)
            total[home] += total.pop(other)
        component[node] = home
        members.setdefault(home, []).append(node)
        total[home] = total.get(home, 0.0) + price
        made.update((v, node) for v in node.outputs)
        if len(total) > 1:
            busy = _deal(total, threads)
            saved = sum(total.values()) - max(spent for spent, _ in busy) - _HANDOVER
            if saved > most:
                tasks = [[n for c in parts for n in members[c]] for _, parts in busy]
                best, most = (tasks, list(later)), saved
    if best is None:
        return None
    places = {node: i for i, node in enumerate(order[begin : begin + _LONGEST])}
    return [sorted(task, key=places.__getitem__) for task in best[0]], best[1]


def _deal(total: dict[int, float], threads: int) -> list[tuple[float, list[int]]]:
    """Components to tasks: the longest first, each to the task that has least."""
    tasks: list[tuple[float, list[int]]] = [(0.0, []) for _ in range(min(threads, len(total)))]
    for part in sorted(total, key=lambda c: (-total[c], c)):
        least = min(range(len(tasks)), key=lambda i: tasks[i][0])
        spent, parts = tasks[least]
        tasks[least] = (spent + total[part], [*parts, part])
    return tasks
