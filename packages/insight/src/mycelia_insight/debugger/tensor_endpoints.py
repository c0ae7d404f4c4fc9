"""The debugger's interface as MindInsight has it: values of tensors, and operators that run once more."""

from __future__ import annotations

import io

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from mycelia.debug.operators import different
from mycelia_insight.debugger.asking import Endpoints, rank_of, text_of, where
from mycelia_insight.debugger.wrong import Wrong
from mycelia_insight.records import tensors
from mycelia_insight.service.compatible.common import need, whole


class TensorEndpoints(Endpoints):
    """Those that ask for tensors, or change them."""

    def routes(self) -> list[BaseRoute]:
        """All routes."""
        own = {
            "tensors": self.tensor, "tensor-comparisons": self.comparison,
            "tensor-graphs": self.graph_of_tensor, "tensor-hits": self.hits_of_tensor,
            "tensor-files/download": self.download, "operator-script": self.script,
        }  # fmt: skip
        changes = {
            "tensor-history": self.history, "tensor-files/load": self.load, "rerun-operator": self.rerun,
            "edit-tensor": self.edit, "dump-step": self.dump,
        }  # fmt: skip
        return [*self.below(own), *self.below(changes, "POST")]

    # ---- tensors

    def history(self, request: Request, body: dict) -> dict:
        session = self.session(request)
        found = session.history(text_of(body, "name"), text_of(body, "graph_name"), rank_of(body))
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
        session.tensor(text_of(body, "name"), text_of(body, "graph_name"), rank_of(body))
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
        found = session.rerun(text_of(body, "name"), text_of(body, "graph_name"), rank_of(body), edits)
        outputs = []
        for slot, (made, before) in enumerate(found):
            text = text_of(body, "shape") if made.ndim else ""
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
        session, rank = self.session(request), rank_of(body)
        found = session.edit(text_of(body, "name"), text_of(body, "graph_name"), rank, body)
        return {**found, **where(session, rank)}

    def dump(self, request: Request, body: dict) -> dict:
        return self.session(request).dump(rank_of(body))

    def script(self, request: Request) -> Response:
        session, name = self.session(request), need(request, "name")
        rank = whole(request, "rank_id", 0, 0, 2**31 - 1)
        text = session.script(name, request.query_params.get("graph_name", ""), rank)
        headers = {"Content-Disposition": 'attachment; filename="operator.py"'}
        return Response(text, media_type="text/x-python", headers=headers)


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
