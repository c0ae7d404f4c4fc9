"""Images: their steps and sizes, and each as a file."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from mycelia_insight.records import images
from mycelia_insight.records.reading import Missing, at_step, message, spread
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.service.compatible.common import Refused, need, route, run_of, values_of, whole
from mycelia_insight.service.settings import Settings

_MISSING = "5054500D"


def routes(library: Library, settings: Settings) -> Sequence[BaseRoute]:
    """Routes below `/v1/mindinsight`."""

    def metadata(request: Request) -> dict:
        run = run_of(library, request)
        found = values_of(run, Kind.IMAGE, need(request, "tag"), _MISSING)
        return {
            "metadatas": [
                {"step": one.step, "wall_time": one.time, "width": one.width, "height": one.height}
                for one in spread(found, settings.max_image_step_size_per_tag or len(found))
            ]
        }

    def single_image(request: Request) -> Response:
        run, tag = run_of(library, request), need(request, "tag")
        need(request, "step")
        step = whole(request, "step", 0, 0, 2**63 - 1)
        try:
            entry = at_step(values_of(run, Kind.IMAGE, tag, _MISSING), step)
        except Missing:
            raise Refused(400, _MISSING, f"Image is not exist. Detail: {tag} at step {step}") from None
        found, _ = images.decode(message(run, entry), entry.dialect)
        return Response(found.data, media_type=found.media_type)

    return [
        route("/datavisual/image/metadata", metadata),
        route("/datavisual/image/single-image", single_image),
    ]
