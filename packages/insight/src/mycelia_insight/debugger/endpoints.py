"""The debugger's interface as MindInsight has it, `/debugger/sessions`: sessions, watchpoints and nodes."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route, Router

from mycelia_insight.debugger.asking import PATH, Endpoints, rank_of, text_of, where
from mycelia_insight.debugger.nodes import by_file
from mycelia_insight.debugger.searching import Ticked, picked_by
from mycelia_insight.debugger.session import condition_collections
from mycelia_insight.debugger.sessions import ONLINE, Sessions
from mycelia_insight.debugger.tensor_endpoints import TensorEndpoints
from mycelia_insight.debugger.wrong import Wrong
from mycelia_insight.service.compatible.common import Refused, whole


def router(sessions: Sessions) -> Router:
    """All paths, over the sessions of a service."""
    known = [*_SessionEndpoints(sessions).routes(), *TensorEndpoints(sessions).routes()]

    async def nothing(request: Request) -> Response:
        if any(route.matches(request.scope)[0] == Match.PARTIAL for route in known):
            return Refused(405, "50545002", "405 Method Not Allowed.").answer
        return Refused(404, "50545001", "404 Not Found.").answer

    methods = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
    return Router([*known, Route("/{path:path}", nothing, methods=methods)], redirect_slashes=False)


class _SessionEndpoints(Endpoints):
    """Those that open sessions, move them, and watch."""

    def routes(self) -> list[BaseRoute]:
        """All routes."""
        own = {
            "condition-collections": self.collections, "search": self.search,
            "recommended-watch-points": self.recommendations, "stacks": self.stacks,
        }  # fmt: skip
        changes = {
            "delete": self.delete, "retrieve": self.retrieve, "recheck": self.recheck,
            "control": self.control, "set-recommended-watch-points": self.recommend,
            "create-watchpoint": self.create_watch, "update-watchpoint": self.update_watch,
            "delete-watchpoint": self.delete_watch, "search-watchpoint-hits": self.hits,
        }  # fmt: skip
        return [
            self.route(PATH, self.create, "POST"), self.route(PATH, self.jobs),
            self.route(f"{PATH}/{{number}}/poll-data", self.poll, waits=True),
            self.route(f"{PATH}/{{number}}/ranks/{{rank}}/graph-runs", self.graph_runs),
            *self.below(own), *self.below(changes, "POST"),
        ]  # fmt: skip

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
        rank = rank_of(params)
        tree = session.tree(rank)
        watches = [watch.as_dict() for watch in list(session.watches.values())]
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
                "graph": {"nodes": tree.children(text_of(params, "name"))},
                "metadata": session.metadata(rank),
            }
        if mode == "watchpoint":
            watch = session.watch(params.get("watch_point_id"))
            chosen = set(watch.nodes if watch else ())
            return {"watch_points": watches, "graph": {"nodes": tree.forest(lambda name, _: name in chosen)}}
        if mode == "watchpoint_hit":
            return {"watch_point_hits": session.hits.get(rank, []), "outdated": session.is_outdated}
        if mode == "tensor":
            history = session.history(text_of(params, "name"), text_of(params, "graph_name"), rank)
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
        rank = rank_of(body)
        number = session.create(body.get("condition"), _ticked(body), rank)
        return {"id": number, **where(session, rank)}

    def update_watch(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        rank = rank_of(body)
        session.update(body.get("watch_point_id"), _ticked(body), body.get("mode"), rank)
        return where(session, rank)

    def delete_watch(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        session.delete(body.get("watch_point_id"))
        return where(session, rank_of(body))

    def recheck(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        session.recheck()
        return where(session, rank_of(body))

    def control(self, request: Request, body: dict) -> dict:
        session, rank = self.session(request), rank_of(body)
        name, graph = text_of(body, "name"), text_of(body, "graph_name")
        node = session.node(name, graph, rank) if name else None
        session.go(str(body.get("mode")), str(body.get("level", "step")), body.get("steps"), node, rank)
        return where(session, rank)

    def hits(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        group = body.get("group_condition") if isinstance(body.get("group_condition"), dict) else {}
        limit, offset = group.get("limit", 10), group.get("offset", 0)
        if not all(isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in (limit, offset)):
            raise Wrong("5054B081", "limit and offset must be whole numbers from 0 on")
        found = session.hits.get(rank_of(body), [])
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
    return Ticked(body.get("watch_nodes") or [], text_of(body, "graph_name"), found)
