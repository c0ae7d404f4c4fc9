"""`SummaryLandscape`: the loss around a training's path, from the checkpoints that SummaryCollector saved."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np

from mycelia.engine.base import errors, ignored, log
from mycelia.engine.base.wire import field
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.reading import of_file
from mycelia.train.summary.events import text
from mycelia.train.summary.summary_record import SummaryRecord, make_directory
from mycelia.train.summary.values import tensor_message


class _Landscape:
    """A LossLandscape message: the grid, and for a path the steps and their points."""

    def __init__(self, grid, path, steps, unit: str, steps_per_epoch: int):
        self._grid, self._path, self._steps = grid, path, steps
        self._unit, self._steps_per_epoch = unit, steps_per_epoch

    @staticmethod
    def _point(x, y, z) -> bytes:
        arrays = (np.asarray(a, np.float32) for a in (x, y, z))
        return b"".join(field(i, tensor_message(a, "Float32")) for i, a in enumerate(arrays, 1))

    def SerializeToString(self) -> bytes:
        steps = b"".join(field(1, int(s)) for s in self._steps)
        meta = text(1, "PCA") + text(2, self._unit) + field(3, self._steps_per_epoch)
        path = steps + field(2, self._point(*self._path))
        return field(1, self._point(*self._grid)) + field(2, path) + field(3, meta)


def _checked(facts: dict) -> dict:
    """What the training wrote about its checkpoints. Errors: ValueError for other content, KeyError."""
    kinds = {"epoch_group": dict, "model_params_file_map": dict, "step_per_epoch": int, "unit": str}
    for name, kind in {**kinds, "landscape_size": int}.items():
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
    """Computes the loss on a grid around the path of a training.

    The grid lies in the plane of the two directions in which the saved weights differ most.
    `summary_dir`: the directory that a SummaryCollector with `collect_landscape` wrote to.
    """

    def __init__(self, summary_dir):
        self._summary_dir = make_directory(summary_dir, "summary_dir")
        self._ckpt_dir = os.path.join(self._summary_dir, "ckpt_dir")

    def clean_ckpt(self) -> None:
        """Remove the checkpoints."""
        shutil.rmtree(self._ckpt_dir, ignore_errors=True)

    @ignored.arguments(device_ids="one process evaluates all")
    def gen_landscapes_with_multi_process(
        self, callback_fn, collect_landscape=None, device_ids=None, output=None
    ) -> None:
        """Evaluate the grid of each interval and record it, one after the other.

        `callback_fn()`: gives (model, network, dataset, metrics), the metrics with a Loss;
        `collect_landscape`: options in place of those of the training; `device_ids` has no effect; `output`:
        directory of the record, by default the summary directory.  Errors: ValueError without checkpoints.
        """
        from mycelia.train.callbacks.summary import check_landscape

        if collect_landscape is not None:
            check_landscape(collect_landscape)
        facts_path = os.path.join(self._ckpt_dir, "train_metadata.json")
        if not os.path.isfile(facts_path):
            raise errors.value_error(
                "SummaryLandscape", f"there are no checkpoints of a training in {self._ckpt_dir}"
            )
        with of_file(facts_path), open(facts_path, encoding="utf-8") as file:
            facts = _checked(json.load(file))
        options = dict(facts)
        if collect_landscape is not None:
            options.update(collect_landscape)
        intervals = options.get("intervals") or list(facts["epoch_group"].values())
        model, network, dataset, _ = callback_fn()
        with SummaryRecord(self._summary_dir if output is None else output) as record:
            for number, interval in enumerate(intervals):
                saved = [i for i in interval if str(i) in facts["model_params_file_map"]]
                if len(saved) < 3:
                    log.logger(__name__).warning("interval %s has less than 3 checkpoints", interval)
                    continue
                found = self._interval(facts, options, saved, model, network, dataset)
                record.add_value("landscape", f"landscape_{number}", found)
                record.record(number)

    def _interval(self, facts, options, steps, model, network, dataset) -> _Landscape:
        from mycelia.io.checkpoint import load_checkpoint

        parameters = network.trainable_params()
        points = []
        for step in steps:
            saved = load_checkpoint(facts["model_params_file_map"][str(step)])
            points.append(np.concatenate([saved[p.name].asnumpy().ravel() for p in parameters]))
        weights = np.stack(points).astype(np.float64)
        center = weights[-1]
        _, _, directions = np.linalg.svd(weights - center, full_matrices=False)
        plane = directions[:2]
        path = (weights - center) @ plane.T
        size = options["landscape_size"]
        axes = []
        for column in path.T:
            margin = 0.2 * (column.max() - column.min() + 1e-6)  # the path does not touch the edge
            axes.append(np.linspace(column.min() - margin, column.max() + margin, size))

        def loss_at(x: float, y: float) -> float:
            self._put(parameters, center + x * plane[0] + y * plane[1])
            return float(next(iter(model.eval(dataset, dataset_sink_mode=False).values())))

        losses = [[loss_at(x, y) for x in axes[0]] for y in axes[1]]
        on_path = [loss_at(x, y) for x, y in path]
        self._put(parameters, center)
        return _Landscape(
            (*axes, losses),
            (path[:, 0], path[:, 1], on_path),
            steps,
            options["unit"],
            facts["step_per_epoch"],
        )

    @staticmethod
    def _put(parameters, values: np.ndarray) -> None:
        at = 0
        for parameter in parameters:
            part = values[at : at + parameter.size].reshape(parameter.shape)
            parameter.set_data(Tensor(part.astype(parameter.dtype.np)))
            at += parameter.size
