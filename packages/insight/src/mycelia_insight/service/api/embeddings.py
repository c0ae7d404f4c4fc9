"""Embeddings: which there are, their coordinates on principal axes, labels, nearest neighbours."""

from __future__ import annotations

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from mycelia_insight.records.reading import Missing, turn
from mycelia_insight.records.wire import Broken
from mycelia_insight.runs.embeddings import METRICS, Embedding, Embeddings, sources
from mycelia_insight.runs.library import Library
from mycelia_insight.service.api.common import RUN, STEP, run_of
from mycelia_insight.service.endpoints import Parameter, RequestError, Table

_ID = Parameter("embedding", str, "id of an embedding, as the list has it")
_BYTES = "application/octet-stream"


def add(table: Table, library: Library) -> None:
    """Add the endpoints to `table`."""
    known = Embeddings()

    def embedding_of(run: str, id: str, step: int | None) -> Embedding:
        try:
            with turn:
                found = known.get(run_of(library, run), id, step)
        except OSError as error:
            raise Broken(f"the embedding {id[:200]!r} cannot be read: {error.strerror}") from error
        if found is None:
            raise Missing(f"run {run!r} has no embedding {id[:200]!r}")
        return found

    @table.get("/runs/{run:path}/embeddings", RUN)
    def embeddings(_request: Request, run: str) -> dict:
        """Tensors of rank 2, with their steps, and embeddings of TensorBoard's projector."""
        listed = sources(run_of(library, run))
        return {
            "run": run,
            "embeddings": [{"id": s.id, "name": s.name, "steps": s.steps, "shape": s.shape} for s in listed],
        }

    @table.get("/runs/{run:path}/embeddings/labels", RUN, _ID, STEP)
    def embedding_labels(_request: Request, run: str, embedding: str, step: int | None) -> dict:
        """Rows of labels by columns, and how much of the variance each principal axis has.

        `rows` are the places of the vectors in what was recorded: those that are not finite are left out.
        """
        found = embedding_of(run, embedding, step)
        _, shares = found.components()
        return {
            "run": run,
            "embedding": embedding,
            "count": found.count,
            "dimensions": found.values.shape[1],
            "rows": found.rows,
            "columns": found.columns,
            "labels": found.labels,
            "trouble": found.trouble,
            "variance": shares,
        }

    @table.get("/runs/{run:path}/embeddings/points", RUN, _ID, STEP)
    def embedding_points(_request: Request, run: str, embedding: str, step: int | None) -> Response:
        """Coordinates on the first principal axes, at most 50: little-endian float32 [rows, axes]."""
        points, _ = embedding_of(run, embedding, step).components()
        return Response(points.astype("<f4").tobytes(), media_type=_BYTES)

    @table.get(
        "/runs/{run:path}/embeddings/graph",
        RUN,
        _ID,
        STEP,
        Parameter("count", int, "how many neighbours of each", 15, 1, 100),
    )
    def embedding_graph(
        _request: Request, run: str, embedding: str, step: int | None, count: int
    ) -> Response:
        """The nearest neighbours of all: int32 [rows, count], then their distances, float32 [rows, count]."""
        found = embedding_of(run, embedding, step)
        try:
            with turn:
                places, distances = found.graph(count)
        except ValueError as error:
            raise RequestError(400, str(error)) from None
        return Response(places.astype("<i4").tobytes() + distances.astype("<f4").tobytes(), media_type=_BYTES)

    @table.get(
        "/runs/{run:path}/embeddings/neighbours",
        RUN,
        _ID,
        STEP,
        Parameter("place", int, "place of a vector among those that are finite", 0, 0, 2**31),
        Parameter("count", int, "how many neighbours", 10, 1, 1000),
        Parameter("metric", str, f"one of {', '.join(METRICS)}", METRICS[0]),
    )
    def embedding_neighbours(
        _request: Request, run: str, embedding: str, step: int | None, place: int, count: int, metric: str
    ) -> dict:
        """The vectors nearest to one in all dimensions, by their places, and distances."""
        if metric not in METRICS:
            raise RequestError(400, f"'metric' must be one of {', '.join(METRICS)}, got {metric[:80]!r}")
        found = embedding_of(run, embedding, step)
        if place >= len(found.values):
            raise RequestError(404, f"there are {len(found.values)} vectors, got the place {place}")
        places, distances = found.neighbours(place, count, metric)
        return {"run": run, "places": places, "distances": np.where(distances < 0, 0, distances)}
