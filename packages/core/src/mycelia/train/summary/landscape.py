"""`SummaryLandscape`: the loss around a training's path, from the checkpoints that SummaryCollector saved."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator

import numpy as np

from mycelia.engine.base import errors, log
from mycelia.engine.base.wire import field
from mycelia.io.reading import of_file
from mycelia.train.summary.events import text
from mycelia.train.summary.loss_evaluation import Evaluation
from mycelia.train.summary.loss_surface import grid_around, grid_of_path, principal_plane, random_plane
from mycelia.train.summary.summary_record import SummaryRecord, make_directory
from mycelia.train.summary.values import tensor_message

_OWNER = "SummaryLandscape"
_DTYPES = {"float32": "Float32", "float64": "Float64", "int64": "Int64"}
_MOST_DEVICES = 8


class _Message:
    """A LossLandscape: the grid, for a path its steps and points, and the point of the trained weights."""

    def __init__(self, grid, end, path, steps, decomposition: str, unit: str, steps_per_epoch: int):
        self._grid, self._end, self._path, self._steps = grid, end, path, steps
        self._decomposition, self._unit, self._steps_per_epoch = decomposition, unit, steps_per_epoch

    @staticmethod
    def _point(*axes: np.ndarray) -> bytes:
        return b"".join(field(i, tensor_message(a, _DTYPES[a.dtype.name])) for i, a in enumerate(axes, 1))

    def SerializeToString(self) -> bytes:
        meta = text(1, self._decomposition) + text(2, self._unit) + field(3, self._steps_per_epoch)
        path = b""
        if self._path is not None:
            path = b"".join(field(1, int(s)) for s in self._steps) + field(2, self._point(*self._path))
            path = field(2, path)
        return field(1, self._point(*self._grid)) + path + field(3, meta) + field(4, self._point(*self._end))


def _checked(facts: dict) -> dict:
    """What the training wrote about its checkpoints. Errors: ValueError for other content, KeyError."""
    kinds = {"epoch_group": dict, "model_params_file_map": dict, "step_per_epoch": int, "unit": str}
    kinds |= {"landscape_size": int, "num_samples": int, "create_landscape": dict}
    for name, kind in kinds.items():
        if type(facts[name]) is not kind:
            raise ValueError(f"{name} must be {kind.__name__}, but got {facts[name]!r}")
    for name, steps in facts["epoch_group"].items():
        if not isinstance(steps, list):
            raise ValueError(f"the steps of interval {name} must be a list, but got {steps!r}")
    for step, path in facts["model_params_file_map"].items():
        if not isinstance(path, str):
            raise ValueError(f"the checkpoint of step {step} must be a path, but got {path!r}")
    return facts


class SummaryLandscape:
    """Computes the loss on grids around the weights of a training.

    For `train`, each interval's grid lies in the plane of the two principal axes of the way that the weights
    took; for `result`, in a random plane through the last weights. Along an axis 1 is a change as long as the
    parameter itself. `summary_dir`: the directory that a SummaryCollector with `collect_landscape` wrote to.
    """

    def __init__(self, summary_dir):
        self._summary_dir = make_directory(summary_dir, "summary_dir")
        self._ckpt_dir = os.path.join(self._summary_dir, "ckpt_dir")

    def clean_ckpt(self) -> None:
        """Remove the checkpoints."""
        shutil.rmtree(self._ckpt_dir, ignore_errors=True)

    def gen_landscapes_with_multi_process(
        self, callback_fn, collect_landscape=None, device_ids=None, output=None
    ) -> None:
        """Evaluate the landscapes and record each as soon as it is there.

        `callback_fn()`: gives (model, network, dataset, metrics), the metrics with a Loss, the dataset in
        batches; `collect_landscape`: options in place of the training's; `device_ids`: numbers of 0..7, a
        process for each: the points are shared out among them; `output`: directory of the
        record, by default the summary directory. An interval takes the steps that were saved, and is left out
        with a warning if these are less than three.
        Errors: TypeError and ValueError for bad arguments; ValueError without checkpoints, and for a dataset
        whose batches are larger than `num_samples`.
        """
        from mycelia.train.callbacks.summary import check_landscape

        if collect_landscape is not None:
            check_landscape(collect_landscape)
        devices = _devices(device_ids)
        facts_path = os.path.join(self._ckpt_dir, "train_metadata.json")
        if not os.path.isfile(facts_path):
            raise errors.value_error(
                _OWNER,
                f"there are no checkpoints of a training in {self._ckpt_dir}",
                hint="SummaryCollector saves them if collect_specified_data has collect_landscape, {} say",
            )
        with of_file(facts_path), open(facts_path, encoding="utf-8") as file:
            facts = _checked(json.load(file))
        options = {**facts, **(collect_landscape or {})}
        with SummaryRecord(self._summary_dir if output is None else output) as record:
            for name, message in self._landscapes(callback_fn, facts, options, devices):
                record.add_value("landscape", f"landscape_{name}", message)
                record.record(0)
                record.flush()

    def _landscapes(self, callback_fn, facts, options, devices) -> Iterator[tuple[list[int], _Message]]:
        """What stands in the tag, the first and last step, or the last alone, and the landscape."""
        files = facts["model_params_file_map"]
        wanted = options["create_landscape"]
        intervals = options.get("intervals") or list(facts["epoch_group"].values())
        intervals = [[step for step in interval if str(step) in files] for interval in intervals]
        about = (options["unit"], facts["step_per_epoch"])
        size = options["landscape_size"]
        with Evaluation(callback_fn, options["num_samples"], len(devices)) as evaluation:
            for interval in intervals if wanted.get("train", True) else ():
                if len(interval) < 3:
                    log.logger(__name__).warning("interval %s has less than 3 checkpoints", interval)
                    continue
                points = [_weights(files[str(step)]) for step in interval]
                plane = principal_plane(points)
                path = np.stack([plane.project(point) for point in points])
                path[-1] = 0  # the center, whatever rounding says
                x, y = grid_of_path(path, size)
                on_path = evaluation.losses(plane, path)
                z = evaluation.losses(plane, _all_of(x, y)).reshape(size, size)
                end = (np.array([0]), np.array([0]), on_path[-1:])
                axes = (*path.T.astype(np.float32), on_path)
                found = _Message((x, y, z), end, axes, interval, "PCA", *about)
                yield [interval[0], interval[-1]], found
            last = next((interval[-1] for interval in reversed(intervals) if interval), None)
            if wanted.get("result", True) and last is not None:
                plane = random_plane(_weights(files[str(last)]), np.random.default_rng())
                x, y = grid_around(size)
                z = evaluation.losses(plane, _all_of(x, y)).reshape(size, size)
                middle = size // 2
                end = (x[middle : middle + 1], y[middle : middle + 1], z[middle, middle : middle + 1])
                yield [last], _Message((x, y, z), end, None, (), "Random", *about)


def _all_of(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Points [y.size * x.size, 2] of a grid, row after row."""
    columns, rows = np.meshgrid(x, y)
    return np.stack([columns.ravel(), rows.ravel()], 1)


def _devices(given) -> list[int]:
    if given is None:
        return [0]
    if not isinstance(given, (list, tuple)) or not given:
        raise errors.type_error(_OWNER, f"device_ids must be a list of int, but got {given!r:.60}")
    for one in given:
        if isinstance(one, bool) or not isinstance(one, int):
            raise errors.type_error(_OWNER, f"a member of device_ids must be an int, but got {one!r:.60}")
        if not 0 <= one < _MOST_DEVICES:
            raise errors.value_error(_OWNER, f"device_ids must be within 0 and 7, but got {one}")
    return list(given)


def _weights(path: str) -> dict[str, np.ndarray]:
    from mycelia.io.checkpoint import load_checkpoint

    return {name: parameter.asnumpy() for name, parameter in load_checkpoint(path).items()}
