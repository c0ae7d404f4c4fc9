"""The debugger's interface as MindInsight has it, `/debugger/sessions`."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route, Router

from mycelia.debug.operators import different
from mycelia_insight.debugger.nodes import by_file
from mycelia_insight.debugger.searching import Ticked, picked_by
from mycelia_insight.debugger.session import Session, condition_collections
from mycelia_insight.debugger.sessions import ONLINE, Sessions
from mycelia_insight.debugger.wrong import Wrong
from mycelia_insight.records import tensors
from mycelia_insight.service.compatible.common import Refused, answer, body_or_refused, need, whole

_PATH = "/debugger/sessions"
_MOST_WAITING = 256  # pages that wait at a time, each with a thread
_waiters: RunVar[CapacityLimiter] = RunVar("debugger's pages that wait")


def router(sessions: Sessions) -> Router:
    """All paths, over the sessions of a service."""
    known = _Debugger(sessions).routes()

    async def nothing(request: Request) -> Response:
        if any(route.matches(request.scope)[0] == Match.PARTIAL for route in known):
            return Refused(405, "50545002", "405 Method Not Allowed.").answer
        return Refused(404, "50545001", "404 Not Found.").answer

    methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
    return Router([*known, Route("/{path:path}", nothing, methods=methods)], redirect_slashes=False)


class _Debugger:
    """Endpoints over the sessions of one service."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def routes(self) -> list[BaseRoute]:
        """All routes; those of a session below its number."""
        own = {
            "condition-collections": self.collections, "search": self.search,
            "recommended-watch-points": self.recommendations,
            "stacks": self.stacks, "tensors": self.tensor, "tensor-comparisons": self.comparison,
            "tensor-graphs": self.graph_of_tensor, "tensor-hits": self.hits_of_tensor,
            "tensor-files/download": self.download, "operator-script": self.script,
        }  # fmt: skip
        changes = {
            "delete": self.delete, "retrieve": self.retrieve, "recheck": self.recheck,
            "control": self.control,
            "set-recommended-watch-points": self.recommend,
            "create-watchpoint": self.create_watch,
            "update-watchpoint": self.update_watch, "delete-watchpoint": self.delete_watch,
            "search-watchpoint-hits": self.hits, "tensor-history": self.history,
            "tensor-files/load": self.load, "rerun-operator": self.rerun, "edit-tensor": self.edit,
            "dump-step": self.dump,
        }  # fmt: skip
        return [
            self.route(_PATH, self.create, "POST"), self.route(_PATH, self.jobs),
            self.route(f"{_PATH}/{{number}}/poll-data", self.poll, waits=True),
            *(self.route(f"{_PATH}/{{number}}/{name}", f) for name, f in own.items()),
            *(self.route(f"{_PATH}/{{number}}/{name}", f, "POST") for name, f in changes.items()),
            self.route(f"{_PATH}/{{number}}/ranks/{{rank}}/graph-runs", self.graph_runs),
        ]  # fmt: skip

    def route(
        self, path: str, function: Callable[..., Any], method: str = "GET", waits: bool = False
    ) -> Route:
        """`function(request, body)` of a POST, else `function(request)`; what it refuses is an answer.

        `waits`: it waits for something to change, with threads of its own, so that pages hold up nobody.
        """

        async def endpoint(request: Request) -> Response:
            async def ask() -> Any:
                given = (await _object(request),) if method == "POST" else ()
                try:
                    limiter = _waiting() if waits else None
                    return await to_thread.run_sync(function, request, *given, limiter=limiter)
                except Wrong as wrong:
                    raise Refused(400, wrong.code, str(wrong)) from None

            return await answer(ask)

        return Route(path, endpoint, methods=[method])

    def session(self, request: Request) -> Session:
        """Errors: Wrong."""
        return self.sessions.get(request.path_params["number"])

    # ---- sessions

    def create(self, request: Request, body: dict) -> str:
        kind = body.get("session_type")
        if kind == "ONLINE":
            if self.sessions.online is None:
                raise Wrong("5054B281", "the service takes no trainings: start it with --enable-debugger 1")
            return ONLINE
        if kind != "OFFLINE" or not isinstance(body.get("dump_dir"), str):
            raise Wrong("5054B281", "session_type must be OFFLINE, and dump_dir the folder of a dump")
        return self.sessions.create(body["dump_dir"])

    def jobs(self, request: Request) -> dict:
        return {"train_jobs": self.sessions.jobs()}

    def delete(self, request: Request, body: dict) -> dict:
        self.sessions.delete(request.path_params["number"])
        return {}

    def poll(self, request: Request) -> dict:
        return self.session(request).poll(request.query_params.get("pos", ""))

    def retrieve(self, request: Request, body: dict) -> dict:
        session, mode = self.session(request), body.get("mode")
        params = body.get("params") or {}
        if not isinstance(params, dict):
            raise Wrong("5054B081", f"params must be an object, but is {params!r}")
        rank = _rank(params)
        tree = session.tree(rank)
        watches = [watch.as_dict() for watch in session.watches.values()]
        if mode == "all":
            devices = [
                {"rank_id": r, "device_id": str(r), "server_ip": session.state(r)["ip"],
                 "graph_names": t.graphs, "total_step_num": dict.fromkeys(t.graphs, session.last_step)}
                for r, t in session.trees.items()
            ]  # fmt: skip
            graph = {"graph_names": tree.graphs, "nodes": tree.children("")}
            return {
                "metadata": session.metadata(rank),
                "graph": graph,
                "watch_points": watches,
                "devices": devices,
            }
        if mode == "node":
            return {
                "graph": {"nodes": tree.children(_text(params, "name"))},
                "metadata": session.metadata(rank),
            }
        if mode == "watchpoint":
            watch = session.watch(params.get("watch_point_id"))
            chosen = set(watch.nodes if watch else ())
            return {"watch_points": watches, "graph": {"nodes": tree.forest(lambda name, _: name in chosen)}}
        if mode == "watchpoint_hit":
            return {"watch_point_hits": session.hits.get(rank, []), "outdated": session.is_outdated}
        if mode == "tensor":
            history = session.history(_text(params, "name"), _text(params, "graph_name"), rank)
            return {"tensor_history": history, "metadata": {"step": session.step}}
        modes = "all, node, watchpoint, watchpoint_hit or tensor"
        raise Wrong("5054B081", f"mode must be {modes}, but is {mode!r}")

    def graph_runs(self, request: Request) -> dict:
        session, rank = self.session(request), request.path_params["rank"]
        if not rank.isdecimal():
            raise Wrong("5054B081", f"rank must be a whole number, but is {rank!r}")
        tree = session.tree(int(rank))
        known = session.source.runs(int(rank))
        first, last = session.source.steps()  # of a long training the last few alone are kept
        runs = [
            {"count": step, "graph_name": g, "has_data": (step, int(g.rpartition("_")[2])) in known,
             "sub_graph_names": []}
            for step in range(first, last + 1) for g in tree.graphs
        ]  # fmt: skip
        return {"graph_runs": runs}

    # ---- watchpoints

    def collections(self, request: Request) -> list:
        self.session(request)
        return condition_collections()

    def recommendations(self, request: Request) -> dict:
        """What is offered, with the numbers that `set-recommended-watch-points` may change."""
        found = [
            {"id": one.name, "condition": {"id": one.condition.id, "abbr": one.condition.abbr, "params": [
                {"name": name, "value": value} for name, value in one.given.items()
            ]}, "operator": one.operator, "nodes": len(names)}
            for one, names in self.session(request).recommendations()
        ]  # fmt: skip
        return {"watch_points": found}

    def recommend(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        given = body.get("requestBody") if isinstance(body.get("requestBody"), dict) else body
        wanted = given.get("set_recommended")
        if not isinstance(wanted, bool):
            raise Wrong("5054B081", "set_recommended must be true or false")
        return {"id": session.recommend(wanted, _chosen(given)), "metadata": session.metadata()}

    def create_watch(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        rank = _rank(body)
        number = session.create(body.get("condition"), _ticked(body), rank)
        return {"id": number, **_where(session, rank)}

    def update_watch(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        rank = _rank(body)
        session.update(body.get("watch_point_id"), _ticked(body), body.get("mode"), rank)
        return _where(session, rank)

    def delete_watch(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        session.delete(body.get("watch_point_id"))
        return _where(session, _rank(body))

    def recheck(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        session.recheck()
        return _where(session, _rank(body))

    def control(self, request: Request, body: dict) -> dict:
        session, rank = self.session(request), _rank(body)
        name, graph = _text(body, "name"), _text(body, "graph_name")
        node = session.node(name, graph, rank) if name else None
        session.go(str(body.get("mode")), str(body.get("level", "step")), body.get("steps"), node, rank)
        return _where(session, rank)

    def hits(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        group = body.get("group_condition") if isinstance(body.get("group_condition"), dict) else {}
        limit, offset = group.get("limit", 10), group.get("offset", 0)
        if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in (limit, offset)):
            raise Wrong("5054B081", "limit and offset must be whole numbers from 0 on")
        found = session.hits.get(_rank(body), [])
        focused = group.get("focused_node")
        if isinstance(focused, dict):
            names = [h["node_name"] for h in found]
            name = f"{focused.get('graph_name')}/{focused.get('node_name')}"
            if name in names and limit:
                offset = names.index(name) // limit
        page = found[offset * limit : (offset + 1) * limit]
        return {
            "total": len(found),
            "offset": offset,
            "outdated": session.is_outdated,
            "watch_point_hits": page,
        }

    # ---- nodes

    def search(self, request: Request) -> dict:
        session, query = self.session(request), request.query_params
        rank = whole(request, "rank_id", 0, 0, 2**31 - 1)
        return {"nodes": session.tree(rank).forest(picked_by(query))}

    def stacks(self, request: Request) -> dict:
        session, word = self.session(request), request.query_params.get("key_word", "")
        limit, offset = whole(request, "limit", 10, 1, 1000), whole(request, "offset", 0, 0, 2**31 - 1)
        nodes = [n for tree in session.trees.values() for n in tree.nodes.values()]
        found = [
            f for f in by_file(nodes)
            if word in f["file_path"] or any(word in i["code_line"] for i in f["items"])
        ]  # fmt: skip
        page = found[offset * limit : (offset + 1) * limit]
        return {"total": len(found), "offset": offset, "stack_infos": page}

    # ---- tensors

    def history(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        found = session.history(_text(body, "name"), _text(body, "graph_name"), _rank(body))
        return {"metadata": {"step": session.step}, "tensor_history": found}

    def _array(self, request: Request, step: int | None = None, before: bool = False) -> np.ndarray:
        """Of the step that is shown, of `step`, or of the step before in which the same graph ran."""
        session, query = self.session(request), request.query_params
        name = query.get("name") or query.get("tensor_name")
        if not name:
            raise Wrong("5054B081", "name is required")
        rank = whole(request, "rank_id", 0, 0, 2**31 - 1)
        graph = query.get("graph_name", "")
        if before:
            step = session.step_before(name.rpartition(":")[0].removesuffix(":input"), graph, rank)
        return session.elements(name, graph, rank, step)

    def tensor(self, request: Request) -> dict:
        value = self._array(request)
        if request.query_params.get("prev") in ("true", "True", "1"):
            value = self._array(request, before=True)
        shown = _shown(value, request.query_params.get("shape", ""))
        name = request.query_params.get("name")
        head = {
            "name": name,
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "step": self.session(request).step,
        }
        return {"tensor_value": {**head, "value": tensors.cells(shown), "statistics": _numbers(value, shown)}}

    def comparison(self, request: Request) -> dict:
        """The tensor, that of the step before, and their difference."""
        session = self.session(request)
        try:
            now, before = self._array(request), self._array(request, before=True)
            if now.shape != before.shape:
                raise Wrong("5054B185", f"its shape is {list(now.shape)}, before it was {list(before.shape)}")
        except Wrong as wrong:
            raise Wrong("5054B185", f"Compare tensors failed. {wrong}") from None
        tolerance = request.query_params.get("tolerance", "0")
        try:
            share = float(tolerance)
        except ValueError:
            raise Wrong("5054B081", f"tolerance must be a number, but is {tolerance!r}") from None
        text = request.query_params.get("shape", "")
        a, b = _shown(now, text).astype(np.float64), _shown(before, text).astype(np.float64)
        apart = np.abs(a - b)
        close = apart <= share * np.abs(b)
        rows = np.stack([a, b, np.where(close, 0.0, apart)], axis=-1)
        numbers = _numbers(now, a) | {"different": int((~close).sum())}
        head = {"shape": list(now.shape), "dtype": str(now.dtype), "step": session.step}
        return {"tensor_value": {**head, "diff": tensors.cells(rows), "statistics": numbers}}

    def graph_of_tensor(self, request: Request) -> dict:
        """The nodes two steps around the one that made a tensor, with their tensors of this step."""
        session, query = self.session(request), request.query_params
        name, graph = need(request, "tensor_name"), query.get("graph_name", "")
        rank = whole(request, "rank_id", 0, 0, 2**31 - 1)
        tree = session.tree(rank)
        start = session.node(name.rpartition(":")[0].removesuffix(":input"), graph, rank)
        around = {tree.full_name(start)}
        for _ in range(2):
            for one in list(around):
                described = tree.described(one)
                around |= {*described["input"], *described["output"]} & tree.nodes.keys()
        nodes = []
        for one in tree.nodes:
            if one in around:
                rows = session.history(one, "", rank)
                made = [r for r in rows if r["type"] == "output"]
                slots = [
                    {"slot": r["name"].rpartition(":")[2], "is_hit": r["is_hit"], "shape": r.get("shape")}
                    for r in made
                ]
                nodes.append({**tree.described(one), "graph_name": one.partition("/")[0], "slots": slots})
        return {"graph": {"nodes": nodes}}

    def hits_of_tensor(self, request: Request) -> dict:
        session = self.session(request)
        name = need(request, "tensor_name")
        rank = whole(request, "rank_id", 0, 0, 2**31 - 1)
        node, slot = name.rpartition(":")[0], name.rpartition(":")[2]
        full = session.tree(rank).full_name(
            session.node(node, request.query_params.get("graph_name", ""), rank)
        )
        points = [
            point for hit in session.hits.get(rank, ()) if hit["node_name"] == full
            for tensor in hit["tensors"] if str(tensor["slot"]) == slot for point in tensor["watch_points"]
        ]  # fmt: skip
        return {"watch_points": points}

    def load(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        session.tensor(_text(body, "name"), _text(body, "graph_name"), _rank(body))
        return {"in_memory": True}

    def download(self, request: Request) -> Response:
        step = whole(request, "step", 0, 0, 2**31 - 1)  # 0: the one that is shown
        value = self._array(request, step or None)
        buffer = io.BytesIO()
        np.save(buffer, value, allow_pickle=False)
        headers = {"Content-Disposition": 'attachment; filename="tensor.npy"'}
        return Response(buffer.getvalue(), media_type="application/octet-stream", headers=headers)

    # ---- one operator

    def rerun(self, request: Request, body: dict) -> dict:
        """Outputs of an operator that runs once more on edited inputs, beside what it made in the step."""
        session = self.session(request)
        edits = body.get("edits", [])
        found = session.rerun(_text(body, "name"), _text(body, "graph_name"), _rank(body), edits)
        outputs = []
        for slot, (made, before) in enumerate(found):
            text = _text(body, "shape") if made.ndim else ""
            is_like = before is not None and made.shape == before.shape
            was = tensors.cells(_shown(before, text), tensors.JAVASCRIPTS_WORDS) if is_like else None
            outputs.append({
                "slot": slot, "dtype": str(made.dtype), "shape": list(made.shape),
                "value": tensors.cells(_shown(made, text), tensors.JAVASCRIPTS_WORDS),
                "recorded": was,
                "statistics": _numbers(made, _shown(made, text)),
                "different": different(made, before) if is_like else None,
            })  # fmt: skip
        return {"metadata": {"step": session.step}, "outputs": outputs}

    def edit(self, request: Request, body: dict) -> dict:
        session, rank = self.session(request), _rank(body)
        found = session.edit(_text(body, "name"), _text(body, "graph_name"), rank, body)
        return {**found, **_where(session, rank)}

    def dump(self, request: Request, body: dict) -> dict:
        return self.session(request).dump(_rank(body))

    def script(self, request: Request) -> Response:
        session, name = self.session(request), need(request, "name")
        rank = whole(request, "rank_id", 0, 0, 2**31 - 1)
        text = session.script(name, request.query_params.get("graph_name", ""), rank)
        headers = {"Content-Disposition": 'attachment; filename="operator.py"'}
        return Response(text, media_type="text/x-python", headers=headers)


def _waiting() -> CapacityLimiter:
    """The limit of this event loop."""
    try:
        return _waiters.get()
    except LookupError:
        found = CapacityLimiter(_MOST_WAITING)
        _waiters.set(found)
        return found


async def _object(request: Request) -> dict:
    found = await body_or_refused(request)
    if not isinstance(found, dict):
        raise Refused(400, "50540002", "Invalid parameter value. The body must be an object.")
    return found


def _where(session: Session, rank: int) -> dict:
    """What is told after a change."""
    now = session.metadata(rank)
    return {"metadata": {"state": now["state"], "enable_recheck": now["enable_recheck"]}}


def _rank(body: dict) -> int:
    found = body.get("rank_id", 0)
    if isinstance(found, bool) or not isinstance(found, int):
        raise Wrong("5054B081", f"rank_id must be a whole number, but is {found!r}")
    return found


def _text(body: dict, name: str) -> str:
    found = body.get(name)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise Wrong("5054B081", f"{name} must be a text, but is {found!r}")
    return found


def _chosen(body: dict) -> dict[str, dict[str, Any]] | None:
    """Recommended watchpoints with their numbers; None if nothing is said of them: all."""
    found = body.get("watch_points")
    if found is None:
        return None
    try:
        if isinstance(found, list):
            return {
                str(one["id"]): {str(p["name"]): p["value"] for p in one.get("params") or []} for one in found
            }
    except (AttributeError, KeyError, TypeError):
        pass
    raise Wrong("5054B081", "watch_points must be a list of {id, params: [{name, value}]}")


def _ticked(body: dict) -> Ticked:
    pattern = body.get("search_pattern")
    if not isinstance(pattern, dict | None):
        raise Wrong("5054B081", f"search_pattern must be an object, but is {pattern!r}")
    found = None if pattern is None else picked_by(pattern)
    return Ticked(body.get("watch_nodes") or [], _text(body, "graph_name"), found)


def _shown(value: np.ndarray, text: str) -> np.ndarray:
    """What a slice such as ``[0,:,2:5]`` picks; the first view if nothing is said.  Errors: Wrong."""
    try:
        return value[tensors.parse(text or tensors.first_view(value.shape), value.shape)]
    except ValueError as cause:
        raise Wrong("5054B081", str(cause)) from None


def _numbers(whole_value: np.ndarray, shown: np.ndarray) -> dict:
    """Statistics of what is shown, and of all with `overall_` in front."""
    return {
        **tensors.statistics(shown),
        **{f"overall_{k}": v for k, v in tensors.statistics(whole_value).items()},
    }
