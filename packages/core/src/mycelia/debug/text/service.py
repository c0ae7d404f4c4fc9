"""A session of Mycelia Insight's debugger as a source: running trainings, or a dump that it has open."""

from __future__ import annotations

import io
import json
import math
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import numpy as np

from mycelia.debug.analyzer import DebuggerTensor, Node
from mycelia.debug.conditions import Condition, Hit, condition
from mycelia.debug.conditions.check import ParameterHit
from mycelia.debug.reading.ir import SourceLine
from mycelia.debug.reading.nonfinite import NonFinite
from mycelia.debug.statistics import Statistics, statistics
from mycelia.debug.text.source import Found, Source, Watch
from mycelia.engine.base import errors

_BUSY = ("sending", "running", "receive_graph")
_PATIENCE_S = 60.0  # of one request; a training answers in 20 s, or the service says that it does not
_AT_ONCE = 100  # nodes of a watchpoint in one request: bodies are 64 KiB at most
_MOST_ROWS = 100_000
_OF_ROW = ("op_full_name", "op_type", "slot", "kind", "count", "size", "born", "rank", "graph")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes to nobody else."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Service:
    """Requests to a service.  Errors of all: ValueError, with what it says."""

    def __init__(self, address: str, token: str = "") -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise errors.value_error("mycelia-debug", f"{address!r} is no address such as http://HOST:PORT")
        self.address = f"{parts.scheme}://{parts.netloc}"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._opener = urllib.request.build_opener(_NoRedirects, urllib.request.ProxyHandler({}))

    def ask(self, path: str, query: dict[str, Any] | None = None, body: dict[str, Any] | None = None) -> Any:
        """The answer to a GET, or with a body to a POST."""
        found = self.read(path, query, body)
        try:
            return json.loads(found)
        except ValueError:
            raise self._wrong(f"{path} is no answer of Mycelia Insight") from None

    def read(
        self, path: str, query: dict[str, Any] | None = None, body: dict[str, Any] | None = None
    ) -> bytes:
        """The same as bytes."""
        url = f"{self.address}{path}" + (f"?{urlencode(query, quote_via=quote)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, **({} if data is None else {"Content-Type": "application/json"})}
        try:
            with self._opener.open(urllib.request.Request(url, data, headers), timeout=_PATIENCE_S) as answer:
                return answer.read()
        except urllib.error.HTTPError as cause:
            raise self._refused(cause) from None
        except (OSError, ValueError) as cause:
            told = getattr(cause, "reason", None) or cause
            raise self._wrong(f"it does not answer: {told}") from None

    def _refused(self, cause: urllib.error.HTTPError) -> errors.MyceliaError:
        with cause:
            text = cause.read(65536).decode(errors="replace")
        if cause.code == 401:
            hint = "--token, or the variable MYCELIA_DEBUGGER_TOKEN"
            return errors.value_error("mycelia-debug", f"{self.address} asks for its token", hint=hint)
        try:
            told = json.loads(text)
            return self._wrong(str(told.get("error_msg") or told.get("error") or text))
        except (ValueError, AttributeError):
            return self._wrong(f"{cause.code} {text.strip()[:200]}")

    def _wrong(self, text: str) -> errors.MyceliaError:
        return errors.value_error(self.address, text)


@dataclass
class _Value:
    """A tensor of a session; its elements are fetched once."""

    source: ServiceSource
    name: str  # NODE:SLOT
    rank: int
    step: int
    held: np.ndarray | None = None

    def array(self) -> np.ndarray | None:
        """The elements; None if there are none of this step."""
        if self.held is None:
            query = {"name": self.name, "rank_id": self.rank, "step": self.step}
            try:
                found = self.source.service.read(f"{self.source.path}/tensor-files/download", query)
            except errors.MyceliaError:
                self.source.alive()  # if it is not, that is what is wrong
                return None
            self.held = np.load(io.BytesIO(found), allow_pickle=False)
        return self.held

    def statistics(self) -> Statistics | None:
        array = self.array()
        return None if array is None else statistics(array)


class ServiceSource(Source):
    """Session `number` of `service`: "0" are running trainings. Steps are counted from 1.

    Watchpoints and the step that is looked at are the session's: pages of it show the same.
    """

    unit = "step"

    def __init__(self, service: Service, number: str = "0") -> None:
        self.service = service
        told = service.ask("/api/v1/debugger")
        self.path = f"{told['sessions']}/{quote(number, safe='')}"
        self.api = f"/api/v1/debugger/{quote(number, safe='')}"
        self.title, self.is_live = f"{service.address} session {number}", number == "0"
        self.about = "the running training" if self.is_live else "a dump of the service"
        if self.is_live and not told["online"]:
            raise errors.value_error(
                service.address, "it takes no trainings", hint="mycelia-insight start --enable-debugger 1"
            )
        self._nodes: dict[int, tuple[int, list[Node]]] = {}  # rank -> version, nodes
        self._metadata: dict[str, Any] = {}
        self._ranks: list[int] = []
        self._steps: list[int] = []
        self.watches = {}
        self.alive()
        self.refresh(self.get_ranks()[0])

    # ---- where one is

    def alive(self, rank: int = 0) -> dict[str, Any]:
        """What the session says of itself."""
        told = self._post("retrieve", {"mode": "all", "params": {"rank_id": rank}})
        self._metadata, self._ranks = told["metadata"], [d["rank_id"] for d in told["devices"]]
        return told

    def refresh(self, rank: int) -> None:
        told = self.alive(rank)
        if rank in self._ranks:
            steps = self.service.ask(f"{self.api}/steps", {"rank": rank})["steps"]
            self._steps = [one["step"] for one in steps]
            self._read_nodes(rank)
        watches = {}
        for one in told["watch_points"]:
            wanted = one["watch_condition"]
            given = {p["name"]: p["value"] for p in wanted["params"]}
            watches[one["id"]] = Watch(condition(wanted["id"]), given, self._watched(one["id"], rank))
        self.watches = watches

    def _read_nodes(self, rank: int) -> None:
        known, _ = self._nodes.get(rank, (-1, []))
        told = self.service.ask(f"{self.api}/nodes", {"rank": rank, "known": known})
        if told["nodes"] is not None:
            self._nodes[rank] = told["version"], [
                Node(
                    self, rank, one["graph"], one["name"], one["type"],
                    tuple(SourceLine(s["file_path"], s["line_no"], s["code_line"]) for s in one["stack"]),
                    tuple(one["inputs"]), one["attributes"],
                )
                for one in told["nodes"]
            ]  # fmt: skip

    @property
    def iteration(self) -> int:
        return self._metadata["step"]

    def where(self) -> str:
        told = self._metadata
        text = f"step {told['step']}"
        if told.get("training_done"):
            return f"{text} (the training has ended)"
        if told.get("training_lost"):
            return f"{text} (the training is gone)"
        if told["state"] == "mismatch":
            return f"{text} (refused: {told['reason']})"
        if told["state"] != "waiting":
            return f"{text} ({told['state']})"
        if told.get("node_name"):
            text += f" at {told['node_name'].rpartition('/')[2]}"
        return text + (f" ({told['reason']})" if told.get("reason") else "")

    def why_empty(self) -> str:
        if not (self._metadata.get("training_done") or self._metadata.get("training_lost")):
            return ""
        return (
            "the training is gone: what was asked for before, and its last step, is all that there is of it"
        )

    def get_ranks(self) -> list[int]:
        return sorted(self._ranks) or [0]

    def get_iterations(self, rank: int) -> list[int]:
        return self._steps

    def graphs(self, rank: int, iteration: int) -> set[int]:
        told = self.service.ask(f"{self.path}/ranks/{rank}/graph-runs")["graph_runs"]
        ran = [r for r in told if r["has_data"] and r["count"] == iteration]
        return {int(r["graph_name"].rpartition("_")[2]) for r in ran}

    def nodes(self, rank: int) -> list[Node]:
        return self._nodes.get(rank, (-1, []))[1]

    # ---- values

    def tensors_of(self, node: Node, iterations: Any = None) -> list[DebuggerTensor]:
        """All that it reads and makes, with those that have no elements in one of the steps."""
        told = self._post("tensor-history", {"name": _full(node), "rank_id": node.rank})
        found = []
        for step in self._steps if iterations is None else [i for i in iterations if i in self._steps]:
            for row in told["tensor_history"]:
                value = _Value(self, row["name"], node.rank, step)
                slot = int(row["name"].rpartition(":")[2])
                found.append(DebuggerTensor(node, row["type"], slot, step, value))
        return found

    def health(self, rank: int, iteration: int) -> dict[str, int]:
        return self.service.ask(f"{self.api}/health", {"rank": rank, "step": iteration})

    def trace(self, rank: int, iteration: int) -> list[NonFinite]:
        query = {"rank": rank, "step": max(1, iteration), "limit": _MOST_ROWS}
        stacks = {(n.graph, n.name): n.stack for n in self.nodes(rank)}
        return [
            NonFinite(
                **{key: row[key] for key in _OF_ROW}, iteration=row["step"],
                stack=stacks.get((row["graph"], row["op_full_name"]), ()),
            )
            for row in self.service.ask(f"{self.api}/why", query)["rows"]
        ]  # fmt: skip

    # ---- moving

    def go(self, rank: int, iteration: int) -> None:
        last = self._steps[-1] if self._steps else 0
        if iteration <= last:
            self._control(rank, mode="reset", steps=iteration)
            return
        if last and self.iteration != last:
            self._control(rank, mode="reset", steps=last)
        within = 1 if self._metadata.get("node_name") else 0  # the rest of a step counts as one
        self.forward(rank, iteration - last + within)

    def forward(self, rank: int, count: int) -> None:
        self._control(rank, mode="continue", level="step", steps=count)

    def to_hit(self, rank: int) -> bool:
        for step in [one for one in self._steps if one > self.iteration]:
            self._control(rank, mode="reset", steps=step)
            if self.hits(rank):
                return True
        self._control(rank, mode="continue", level="step", steps=-1)
        return bool(self.hits(rank))

    def to_node(self, rank: int, node: Node | None) -> None:
        if not self.is_live:
            super().to_node(rank, node)
        name = "" if node is None else _full(node)
        self._control(rank, mode="continue", level="node", name=name, rank_id=rank)

    def pause(self, rank: int) -> None:
        self._control(rank, mode="pause")

    def terminate(self, rank: int) -> None:
        self._control(rank, mode="terminate")
        while self.is_live and self._metadata["state"] != "pending":
            self._wait(rank)

    def _control(self, rank: int, **body: Any) -> None:
        """Move, and wait until all trainings wait again, or are gone."""
        self._post("control", body)
        self.alive(rank)
        while self._metadata["state"] in _BUSY:
            self._wait(rank)
        self.refresh(rank)

    def _wait(self, rank: int) -> None:
        """Until anything changes, a few seconds at most."""
        self.service.ask(f"{self.path}/poll-data", {"pos": self._metadata["pos"]})
        self.alive(rank)

    # ---- watchpoints

    def watch(self, wanted: Condition, given: dict[str, Any], nodes: list[Node]) -> None:
        names, rank = [_full(node) for node in nodes], nodes[0].rank
        body = {
            "condition": {"id": wanted.id, "params": [{"name": k, "value": v} for k, v in given.items()]},
            "watch_nodes": names[:_AT_ONCE], "rank_id": rank,
        }  # fmt: skip
        number = self._post("create-watchpoint", body)["id"]
        for start in range(_AT_ONCE, len(names), _AT_ONCE):
            more = {"watch_nodes": names[start : start + _AT_ONCE], "mode": 1, "rank_id": rank}
            self._post("update-watchpoint", {"watch_point_id": number, **more})
        self.refresh(rank)

    def unwatch(self, number: int | None) -> None:
        self._post("delete-watchpoint", {"watch_point_id": number})
        self.refresh(self.get_ranks()[0])

    def hits(self, rank: int) -> list[Found]:
        if self.alive(rank)["metadata"]["enable_recheck"]:
            self._post("recheck", {})
        by_name = {_full(node): node for node in self.nodes(rank)}
        group = {"limit": _MOST_ROWS, "offset": 0}
        told = self._post("search-watchpoint-hits", {"group_condition": group, "rank_id": rank})
        found = []
        for row in told["watch_point_hits"]:
            for tensor in row["tensors"]:
                node, slot = by_name[row["node_name"]], tensor["slot"]
                value = _Value(self, f"{row['node_name']}:{slot}", rank, self.iteration)
                of_it = DebuggerTensor(node, "output", slot, self.iteration, value)
                found += [(point["id"], of_it, _hit(point)) for point in tensor["watch_points"]]
        return sorted(found, key=lambda one: one[0])

    def _watched(self, number: int, rank: int) -> list[Node]:
        params = {"watch_point_id": number, "rank_id": rank}
        told = self._post("retrieve", {"mode": "watchpoint", "params": params})
        names = set(_leaves(told["graph"]["nodes"]))
        return [node for node in self.nodes(rank) if _full(node) in names]

    # ---- one operator

    def rerun(self, node: Node, edits: list[dict[str, Any]]) -> list[dict[str, Any]]:
        told = [{**edit, "value": _worded(edit["value"])} for edit in edits]
        body = {"name": _full(node), "rank_id": node.rank, "edits": told}
        outputs = self._post("rerun-operator", body)["outputs"]
        return [
            {**one, "value": _unworded(one["value"]), "recorded": _unworded(one["recorded"])}
            for one in outputs
        ]

    def script(self, node: Node) -> str:
        query = {"name": _full(node), "rank_id": node.rank}
        return self.service.read(f"{self.path}/operator-script", query).decode()

    def edit(self, node: Node, index: str, value: Any) -> None:
        body = {"name": _full(node), "rank_id": node.rank, "index": index, "value": _worded(value)}
        self._post("edit-tensor", body)

    def dump(self, rank: int) -> tuple[str, int]:
        told = self._post("dump-step", {"rank_id": rank})
        return told["folder"], told["step"]

    def _post(self, name: str, body: dict[str, Any]) -> Any:
        return self.service.ask(f"{self.path}/{name}", body=body)


def _worded(value: Any) -> Any:
    """A number, or nested lists of numbers, as JSON has them: what is not finite is a word."""
    if isinstance(value, list):
        return [_worded(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _unworded(value: Any) -> Any:
    """The numbers that `_worded` has words for."""
    if isinstance(value, list):
        return [_unworded(one) for one in value]
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def _full(node: Node) -> str:
    """As the interface calls it."""
    return f"graph_{node.graph}/{node.name}"


def _leaves(nodes: list[dict[str, Any]]) -> list[str]:
    return [
        name for one in nodes for name in (_leaves(one["nodes"]) if one["nodes"] else [one["name"]])
    ]  # fmt: skip


def _hit(point: dict[str, Any]) -> Hit:
    parameters = tuple(
        ParameterHit(p["name"], p["value"], p["actual_value"], True)
        for p in point["watch_condition"]["params"] if p["actual_value"] is not None
    )  # fmt: skip
    return Hit(not point["error_code"] or bool(parameters), point["error_code"], parameters)
