"""Asks MindInsight and Mycelia Insight the same and tells where the answers differ.

`python tools/oracle_insight.py http://127.0.0.1:8081 http://127.0.0.1:8080`: MindInsight 2.3.1 and ours, both
started on one folder of runs. All GETs of all runs with all tags and steps, and wrong parameters.
Differences that are meant are passed over: see `MEANT`. Exit code 1 if there are others. With
`--record FILE` in place of ours what MindInsight answers is written to a file, gzipped if it ends in `.gz`:
tests compare with that of the runs in packages/insight/tests/fixtures.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

PREFIX = "/v1/mindinsight"
#: Parts of answers that differ on purpose, by the path of the endpoint; texts of errors differ everywhere.
MEANT = {
    "/datavisual/landscape/intervals": {"id"},  # MindInsight's are new with each of its processes
    "/datavisual/train-jobs": {"update_time", "create_time"},  # theirs are those of files
}
_NUMBERS = (int, float)
Params = list[tuple[str, object]]


def ask(base: str, path: str, params: Params, body: object = None) -> tuple[int, object]:
    """(status, what the JSON says, or the bytes)."""
    address = base + PREFIX + path + ("?" + urlencode(params) if params else "")
    data = None if body is None else json.dumps(body).encode()
    request = Request(address, data, {"Content-Type": "application/json"})
    try:
        with urlopen(request, timeout=60) as answer:
            status, content, kind = answer.status, answer.read(), answer.headers["Content-Type"]
    except HTTPError as error:
        status, content, kind = error.code, error.read(), error.headers["Content-Type"]
    return status, json.loads(content) if "json" in (kind or "") else content


def requests(base: str) -> Iterator[tuple[str, Params, object]]:
    """What is asked: path, parameters, and the body of what is posted."""
    yield "/ui-config", [], None
    yield "/datavisual/train-jobs", [], None
    jobs = ask(base, "/datavisual/train-jobs", [("limit", 999)])[1]["train_jobs"]
    for name, value in (("offset", -1), ("limit", 0), ("limit", 1000), ("offset", "x"), ("limit", 1)):
        yield "/datavisual/train-jobs", [(name, value)], None
    for body in ({}, {"limit": 2}, {"sorted_name": "loss"}, {"loss": {"lt": 1}}, {"loss": 1}, {"x": {}},
                 {"lineage_type": {"eq": "dataset"}}, {"lineage_type": {"eq": "model"}}):  # fmt: skip
        yield "/lineagemgr/lineages", [], body
    yield "/datavisual/train-job-caches", [], {"train_ids": [job["train_id"] for job in jobs]}
    for body in ({}, {"train_ids": "x"}, {"train_ids": []}, {"train_ids": ["./gone"]}):
        yield "/datavisual/train-job-caches", [], body
    for job in [*jobs, {"train_id": "./gone", "plugins": {}}]:
        yield from of_run(base, ("train_id", job["train_id"]), job["plugins"])
    for path in ("/datavisual/plugins", "/datavisual/single-job", "/datavisual/scalar/metadata",
                 "/datavisual/scalars", "/datavisual/image/metadata", "/datavisual/image/single-image",
                 "/datavisual/histograms", "/datavisual/tensors", "/datavisual/graphs/nodes",
                 "/datavisual/graphs/nodes/names", "/datavisual/graphs/single-node",
                 "/datavisual/graphs/nodes/all", "/datavisual/landscape/intervals",
                 "/datavisual/landscape/landscapes", "/datasets/dataset_graph", "/nothing"):  # fmt: skip
        yield path, [], None


def of_run(base: str, run: tuple[str, object], plugins: dict) -> Iterator[tuple[str, Params, object]]:
    yield "/datavisual/plugins", [run], None
    yield "/datasets/dataset_graph", [run], None
    yield "/datavisual/landscape/intervals", [run], None
    yield "/datavisual/landscape/landscapes", [run, ("type", "final")], None
    for plugin in (
        "scalar",
        "image",
        "histogram",
        "tensor",
        "graph",
        "optimized_graph",
        "loss_landscape",
        "x",
    ):
        yield "/datavisual/single-job", [run, ("plugin_name", plugin)], None
    paths = ("/datavisual/scalar/metadata", "/datavisual/scalars", "/datavisual/image/metadata",
             "/datavisual/histograms")  # fmt: skip
    for path in paths:
        yield path, [run, ("tag", "gone")], None
    for tag in plugins.get("scalar", []):
        yield "/datavisual/scalar/metadata", [run, ("tag", tag)], None
        yield "/datavisual/scalars", [run, ("tag", tag)], None
    for tag in plugins.get("image", []):
        yield "/datavisual/image/metadata", [run, ("tag", tag)], None
        steps = ask(base, "/datavisual/image/metadata", [run, ("tag", tag)])[1]["metadatas"]
        for step in [*(one["step"] for one in steps), -1, 999999, "x"]:
            yield "/datavisual/image/single-image", [run, ("tag", tag), ("step", step)], None
    for tag in plugins.get("histogram", []):
        yield "/datavisual/histograms", [run, ("tag", tag)], None
    for tag in plugins.get("tensor", []):
        for detail in ("stats", "histogram", "x"):
            yield "/datavisual/tensors", [run, ("tag", tag), ("detail", detail)], None
        found = ask(base, "/datavisual/tensors", [run, ("tag", tag), ("detail", "stats")])[1]["tensors"]
        value = found[0]["values"][-1]
        for dims in ("[:, :]", "[0, :]", "[-1, 0:2]", "[0]", "[:, :, :]", "x", "[9999, 0]"):
            for step in (value["step"], 999999):
                params = [run, ("tag", tag), ("detail", "data"), ("step", step), ("dims", dims)]
                yield "/datavisual/tensors", params, None
    for kind, mode in (("graph", "normal"), ("optimized_graph", "optimize")):
        for tag in plugins.get(kind, []):
            yield from of_graph(base, [run, ("tag", tag), ("mode", mode)])


def of_graph(base: str, graph: Params) -> Iterator[tuple[str, Params, object]]:
    waiting = [""]
    while waiting:
        name = waiting.pop()
        yield "/datavisual/graphs/nodes", [*graph, ("name", name)], None
        nodes = ask(base, "/datavisual/graphs/nodes", [*graph, ("name", name)])[1].get("nodes", [])
        waiting += [node["name"] for node in nodes if node["subnode_count"]]
        for node in nodes[:3]:
            yield "/datavisual/graphs/single-node", [*graph, ("name", node["name"])], None
    for text in ("conv", "Default", "nothing like this"):
        yield "/datavisual/graphs/nodes/names", [*graph, ("search", text)], None
    yield "/datavisual/graphs/nodes/names", [*graph, ("search", "o"), ("offset", 1), ("limit", 3)], None
    yield "/datavisual/graphs/nodes/all", graph, None
    yield "/datavisual/graphs/nodes", [*graph, ("name", "gone")], None


def difference(theirs: object, ours: object, passed: set[str], at: str = "") -> str:
    """Where two answers are not equal first, "" if they are; numbers may differ by rounding."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in [*theirs, *(key for key in ours if key not in theirs)]:
            if key in passed:
                continue
            if key not in theirs or key not in ours:
                return f"{at}.{key} is missing: {(theirs | ours)[key]!r:.80}"
            if found := difference(theirs[key], ours[key], passed, f"{at}.{key}"):
                return found
        return ""
    if isinstance(theirs, list) and isinstance(ours, list):
        if len(theirs) != len(ours):
            return f"{at} has {len(theirs)} members, ours {len(ours)}"
        pairs = zip(theirs, ours, strict=True)
        return next(
            (d for i, (a, b) in enumerate(pairs) if (d := difference(a, b, passed, f"{at}[{i}]"))), ""
        )
    if type(theirs) in _NUMBERS and type(ours) in _NUMBERS:
        # Counts of shared buckets are rounded up, so what rounding makes of a whole number counts as one.
        near = 1 if "buckets" in at and at.endswith("[2]") else 1e-9
        if math.isclose(theirs, ours, rel_tol=1e-6, abs_tol=near):
            return ""
    return "" if theirs == ours else f"{at}: {theirs!r:.160} != {ours!r:.160}"


def record(theirs: str, path: str) -> None:
    """Write what MindInsight answers, other than images and faults, for tests that have none."""
    told = []
    for asked, params, body in requests(theirs):
        status, answer = ask(theirs, asked, params, body)
        if status != 500 and not isinstance(answer, bytes):
            told.append([asked, params, body, status, answer])
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in told)
    content = f"[\n{lines}\n]\n".encode()
    Path(path).write_bytes(gzip.compress(content, mtime=0) if path.endswith(".gz") else content)


def main(theirs: str, ours: str) -> int:
    count, wrong = 0, 0
    for path, params, body in requests(theirs):
        one, other = ask(theirs, path, params, body), ask(ours, path, params, body)
        count += 1
        if one[0] == 500:
            told = ""  # a fault of theirs
        elif one[0] != other[0]:
            told = f"status {one[0]} {one[1]!r:.150}, ours {other[0]} {other[1]!r:.150}"
        else:
            told = difference(one[1], other[1], MEANT.get(path, set()) | {"error_msg"})
        if told:
            wrong += 1
            print(f"{path}?{urlencode(params)[:120]} {'' if body is None else json.dumps(body)}\n    {told}")
    print(f"{count} requests, {wrong} answered otherwise")
    return int(wrong > 0)


if __name__ == "__main__":
    if sys.argv[2] == "--record":
        record(sys.argv[1], sys.argv[3])
    else:
        sys.exit(main(*sys.argv[1:3]))
