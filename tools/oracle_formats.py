"""Both-way check of files: what one framework writes, the other reads, and computes the same with.

The entries are in `oracle_networks.py` and `oracle_checkpoints.py`. One framework runs a network, saves a
checkpoint and MindIR, and its outputs; the other builds the network with other weights, loads the checkpoint,
loads the MindIR as well, and compares. Checkpoints of other kinds are written by one and shown by both. Then
the two change places. Each framework goes through all entries in one process, and in a new one when an entry
ends the process.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from oracle import HEAD, Oracle
from oracle_checkpoints import CHECKPOINTS
from oracle_networks import NETWORKS, zoo

# What both processes share: the entries are modules, so that compilers find their source.
_DRIVER = """
import importlib, os, sys
import numpy as np
import mindspore as ms
from mindspore import Tensor, nn
sys.modules.setdefault("mycelia", ms)  # the zoo names the framework that it belongs to
sys.path[:0] = [os.getcwd(), {zoo!r}]
ms.set_context(mode=ms.PYNATIVE_MODE)

def arrays(result):
    if isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, (tuple, list)):
        return [a for r in result for a in arrays(r)]
    return [result.asnumpy() if isinstance(result, Tensor) else np.asarray(result)]

def tensors(values):
    return [Tensor(v) if isinstance(v, np.ndarray) else v for v in values]

def entry(name, seed):
    ms.set_seed(seed)
    np.random.seed(seed)
    return importlib.import_module(name)

def calls(it):
    return [it.inputs, *getattr(it, "again", ())]

def short(error):
    lines = [line for line in str(error).splitlines() if line.strip() and not set(line.strip()) <= set("-")]
    return type(error).__name__ + " " + (lines or [""])[0][:150].replace("|", "/")

def begins(name):
    print("begins", name, flush=True)

def tell(name, what, text):
    print("verdict", name, what, text, flush=True)

def same(found, expected, rtol):
    if len(found) != len(expected):
        return "%d results for %d" % (len(found), len(expected))
    for i, (f, e) in enumerate(zip(found, expected)):
        f = np.asarray(f)
        if f.shape != e.shape or f.dtype != e.dtype:
            return "result %d is %s%s for %s%s" % (i, f.dtype, list(f.shape), e.dtype, list(e.shape))
        if e.dtype.kind in "fc":
            scale = np.abs(e).max(initial=0)  # rtol of the largest: small ones may be sums that cancel
            if not np.allclose(f, e, rtol, rtol * scale + 1e-6, equal_nan=True):
                return "result %d is off by %.1e of %.1e" % (i, np.abs(f - e).max(), scale)
        elif not (f == e).all():
            return "result %d differs" % i
    return "ok"
"""

_WRITE = """
for name in {names!r}:
    begins(name)
    try:
        it = entry(name, 1)
        if hasattr(it, "save"):
            it.save(name)
            continue
        net, training = it.net, getattr(it, "training", False)
        net.set_train(training)
        ms.save_checkpoint(net, name + ".ckpt")
        shapes = tensors(getattr(it, "shapes", it.inputs))
        ms.export(net, *shapes, file_name=name, file_format="MINDIR", **getattr(it, "writing", {{}}))
        results = [arrays(net(*tensors(values))) for values in calls(it)]
        if training:  # what the calls left in the parameters belongs to what is compared
            results.append([p.asnumpy() for p in net.get_parameters()])
        np.savez(name + ".npz", *[a for result in results for a in result])
    except Exception as error:
        tell(name, "write", short(error))
"""

_READ = """
def verdict(name, what, it, compute):
    try:
        expected = list(np.load(name + ".npz").values())
        tell(name, what, same(compute(it, name), expected, getattr(it, "rtol", 1e-4)))
    except Exception as error:
        tell(name, what, short(error))

def from_checkpoint(it, name):
    left, unknown = ms.load_param_into_net(it.net, ms.load_checkpoint(name + ".ckpt"))
    if left or unknown:
        raise ValueError("not loaded: %s, of no use: %s" % (left, unknown))
    training = getattr(it, "training", False)
    it.net.set_train(training)
    results = [a for values in calls(it) for a in arrays(it.net(*tensors(values)))]
    return results + ([p.asnumpy() for p in it.net.get_parameters()] if training else [])

def from_mindir(it, name):
    split = os.path.exists(name + "_graph.mindir")
    graph = ms.load(name + ("_graph" if split else "") + ".mindir", **getattr(it, "reading", {{}}))
    net = nn.GraphCell(graph)
    net.set_train(False)
    results = [a for values in calls(it) for a in arrays(net(*tensors(values)))]
    if getattr(it, "training", False):
        kept = {{p.name: p.asnumpy() for p in net.get_parameters()}}
        results += [kept[p.name] for p in it.net.get_parameters()]
    return results

for name in {names!r}:
    begins(name)
    try:
        it = entry(name, 2)
        if hasattr(it, "save"):
            for text in it.show(name):
                tell(name, "shown", repr(text))
            continue
        if list(it.net.get_parameters()):
            verdict(name, "ckpt", it, from_checkpoint)
        else:
            tell(name, "ckpt", "no weights")
        ms.set_context(mode=ms.GRAPH_MODE)  # MindSpore runs a loaded graph in no other
        verdict(name, "MindIR", it, from_mindir)
    except Exception as error:
        tell(name, "read", short(error))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
"""

_WAYS = (("MindSpore", "Mycelia"), ("Mycelia", "MindSpore"))
_KINDS = ("ckpt", "MindIR")


def _run(oracle: Oracle, framework: str, task: str, names: list[str], folder: str) -> dict[str, list]:
    """Verdicts (what, text) by entry. An entry that ends the process gets one of its own."""
    found: dict[str, list] = {name: [] for name in names}
    rest = names
    while rest:
        code = (_DRIVER + task).format(names=rest, zoo=str(zoo()))
        done = oracle.run(framework, HEAD + code, folder)
        begun = ""
        for line in done.text.splitlines():
            kind, _, text = line.partition(" ")
            if kind == "begins":
                begun = text
            elif kind == "verdict":
                name, what, text = text.split(" ", 2)
                found[name].append((what, text))
        if not done.error:
            break
        if not begun:
            raise RuntimeError(f"{framework} does not start: {done.error}\n{done.stderr[-2000:]}")
        found[begun].append(("end", f"the process ended: {done.error}"))
        rest = rest[rest.index(begun) + 1 :]
    return found


def _verdicts(
    name: str, writer: str, wrote: list, read: list, shown: list, kinds: tuple[str, ...]
) -> list[str]:
    """One verdict for each kind of file; `ok` where it fits."""
    for what, text in wrote:
        if what in ("write", "end"):
            return [f"{writer} does not write: {text}"] * len(kinds)
    if shown:  # a checkpoint: both show the same
        here, there = ([text for what, text in told] for told in (read, shown))
        pairs = zip([*here, "(end)"], [*there, "(end)"])
        apart = next(((a, b) for a, b in pairs if a != b), None)
        return ["ok" if apart is None else f"{apart[0][:150]} for {apart[1][:150]}"]
    told = dict(read)
    failure = told.get("read") or told.get("end") or "nothing"
    return [told.get(kind, failure) for kind in kinds]


def check(oracle: Oracle, pattern: str = "") -> int:
    """Exchange the entries of matching names both ways and print the tables. 0 if everything fits, else 1."""
    networks = {n: c for n, c in NETWORKS.items() if re.search(pattern, n)}
    checkpoints = {n: c for n, c in CHECKPOINTS.items() if re.search(pattern, n)}
    modules = {n: re.sub(r"\W+", "_", f"entry {n}") for n in (*networks, *checkpoints)}
    oracle.timeout_s = max(oracle.timeout_s, 1800)
    rows: dict[str, list[str]] = {n: [] for n in modules}
    for writer, reader in _WAYS:
        with tempfile.TemporaryDirectory() as folder:
            for name, module in modules.items():
                text = HEAD + {**networks, **checkpoints}[name]
                Path(folder, module + ".py").write_text(text, encoding="utf-8")
            names = list(modules.values())
            wrote = _run(oracle, writer, _WRITE, names, folder)
            read = _run(oracle, reader, _READ, names, folder)
            own = [modules[n] for n in checkpoints]
            shown = _run(oracle, writer, _READ, own, folder)
        for name, module in modules.items():
            kinds = _KINDS if name in networks else ("ckpt",)
            rows[name] += _verdicts(module, writer, wrote[module], read[module], shown.get(module, []), kinds)
    failures = _table("network", _KINDS, {n: rows[n] for n in networks})
    failures += _table("checkpoint", ("ckpt",), {n: rows[n] for n in checkpoints})
    count = sum(map(len, rows.values()))
    print(f"{failures} of {count} do not fit" if failures else f"all {count} fit")
    return 1 if failures else 0


def _table(title: str, kinds: tuple[str, ...], rows: dict[str, list[str]]) -> int:
    """Print the verdicts as a table; how many are not `ok`."""
    if rows:
        columns = [f"{kind} {a} -> {b}" for a, b in _WAYS for kind in kinds]
        print(f"| {title} | " + " | ".join(columns) + " |")
        print("| --- |" + " --- |" * len(columns))
        for name, verdicts in rows.items():
            print(f"| {name} | " + " | ".join(verdicts) + " |")
    return sum(verdict not in ("ok", "no weights") for verdicts in rows.values() for verdict in verdicts)


if __name__ == "__main__":
    sys.exit("run: python tools/oracle.py --formats")
