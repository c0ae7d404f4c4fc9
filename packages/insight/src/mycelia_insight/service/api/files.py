"""Images and sounds: which there are, and each as a file of a fixed type."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from mycelia_insight.records import images, layers, sounds
from mycelia_insight.records.reading import at_step, entries, message
from mycelia_insight.runs.kinds import Kind
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Entry, Run
from mycelia_insight.service.api.common import RUN, STEP, TAG, run_of
from mycelia_insight.service.endpoints import Parameter, RequestError, Table

_SAMPLE = Parameter("sample", int, "which one of a batch", 0, 0, 2**31)
_KINDS = {"image": Kind.IMAGE, "audio": Kind.AUDIO}


def add(table: Table, library: Library) -> None:
    """Add the endpoints to `table`."""

    @table.get(
        "/runs/{run:path}/media",
        RUN,
        Parameter("kind", str, f"one of {', '.join(_KINDS)}"),
        TAG,
    )
    def media(_request: Request, run: str, kind: str, tag: str) -> dict:
        """Steps of images or sounds, times, sizes if messages say so, how many a batch has, and whether the
        first or the last has boxes or masks over it (`layers`).
        """
        if kind not in _KINDS:
            raise RequestError(400, f"'kind' must be one of {', '.join(_KINDS)}, got {kind[:80]!r}")
        of_run = run_of(library, run)
        found = entries(of_run, _KINDS[kind], tag)
        sample = images.decode if kind == "image" else _sound
        try:
            count = sample(message(of_run, found[-1]), found[-1].dialect)[1]
        except (ValueError, IndexError):
            count = 1  # the file itself tells what is wrong with it
        return {
            "run": run,
            "tag": tag,
            "samples": count,
            "layers": kind == "image" and any(_has_layers(of_run, entry) for entry in (found[0], found[-1])),
            "steps": [entry.step for entry in found],
            "times": [entry.time for entry in found],
            "sizes": [[entry.width, entry.height] for entry in found],
        }

    @table.get("/runs/{run:path}/image", RUN, TAG, STEP, _SAMPLE)
    def image(_request: Request, run: str, tag: str, step: int | None, sample: int) -> Response:
        """An image at a step: a PNG, JPEG or GIF as it was written."""
        of_run = run_of(library, run)
        entry = at_step(entries(of_run, Kind.IMAGE, tag), step)
        try:
            found, _ = images.decode(message(of_run, entry), entry.dialect, sample)
        except IndexError as error:
            raise RequestError(404, str(error)) from None
        return Response(found.data, media_type=found.media_type)

    @table.get("/runs/{run:path}/image/layers", RUN, TAG, STEP)
    def image_layers(_request: Request, run: str, tag: str, step: int | None) -> dict:
        """Boxes and masks over an image at a step: of each layer its name, boxes in pixels from the upper
        left corner, at most 2000, those with the best scores (`left_out`: how many others), whether it has
        a `mask`, and `classes`, what its numbers mean.
        """
        of_run = run_of(library, run)
        entry = at_step(entries(of_run, Kind.IMAGE, tag), step)
        return {
            "run": run,
            "tag": tag,
            "step": entry.step,
            "layers": [layers.told(layer) for layer in layers.layers(message(of_run, entry))],
        }

    @table.get(
        "/runs/{run:path}/image/mask",
        RUN,
        TAG,
        STEP,
        Parameter("layer", int, "place of the layer, from 0", 0, 0, 1000),
    )
    def image_mask(_request: Request, run: str, tag: str, step: int | None, layer: int) -> Response:
        """The mask of a layer: an image whose pixels are numbers of classes, 0 for none."""
        of_run = run_of(library, run)
        entry = at_step(entries(of_run, Kind.IMAGE, tag), step)
        try:
            found = layers.mask(message(of_run, entry), layer)
        except IndexError as error:
            raise RequestError(404, str(error)) from None
        return Response(found.data, media_type=found.media_type)

    @table.get("/runs/{run:path}/audio", RUN, TAG, STEP, _SAMPLE)
    def audio(_request: Request, run: str, tag: str, step: int | None, sample: int) -> Response:
        """A sound at a step, a WAVE file."""
        of_run = run_of(library, run)
        entry = at_step(entries(of_run, Kind.AUDIO, tag), step)
        try:
            found, _ = sounds.decode(message(of_run, entry), sample)
        except IndexError as error:
            raise RequestError(404, str(error)) from None
        return Response(found, media_type=sounds.MEDIA_TYPE)


def _has_layers(run: Run, entry: Entry) -> bool:
    try:
        return bool(layers.layers(message(run, entry)))
    except ValueError:
        return False


def _sound(data: bytes, _dialect: object) -> tuple[bytes, int]:
    return sounds.decode(data)
