"""The loss of a network at points of a plane of weights, computed by one process or several."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from mycelia.dataset import config
from mycelia.engine.base import errors
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.metrics import Loss, get_metrics
from mycelia.nn.wrap.cell_wrapper import WithLossCell
from mycelia.train.summary.loss_surface import Plane

_OWNER = "SummaryLandscape"


class Evaluation:
    """Computes losses while it is open; `processes`: how many share the work, 1 for this one.

    `callback_fn` and `num_samples`: as `LossAt` has them. Nothing is started before the first losses.
    """

    def __init__(self, callback_fn: Callable[[], tuple], num_samples: int, processes: int):
        self._begin = (callback_fn, num_samples)
        self._processes = processes
        self._here: LossAt | None = None
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Evaluation:
        return self

    def __exit__(self, *err) -> None:
        if self._here is not None:
            self._here.restore()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def losses(self, plane: Plane, points: np.ndarray) -> np.ndarray:
        """Losses [n] at points [n, 2] of the plane."""
        if self._processes == 1:
            if self._here is None:
                self._here = LossAt(*self._begin)
            return self._here(plane, points)
        if self._pool is None:
            context = multiprocessing.get_context(config.get_multiprocessing_start_method())
            self._pool = ProcessPoolExecutor(self._processes, context, _start, self._begin)
        shares = np.array_split(points, self._processes)
        return np.concatenate(list(self._pool.map(_share, [plane] * len(shares), shares)))


_loss_at: LossAt | None = None  # of this process, where it is one of several


def _start(callback_fn: Callable[[], tuple], num_samples: int) -> None:
    global _loss_at
    try:
        _loss_at = LossAt(callback_fn, num_samples)
    except Exception as error:  # told by the first work: a pool would only say that it is broken
        _loss_at = _Failed(error)


class _Failed:
    """Stands for a process that could not begin."""

    def __init__(self, error: Exception):
        self._error = error

    def __call__(self, plane: Plane, points: np.ndarray) -> np.ndarray:
        raise self._error


def _share(plane: Plane, points: np.ndarray) -> np.ndarray:
    return _loss_at(plane, points)


class LossAt:
    """The mean loss over the first `num_samples` samples, in training mode, as MindSpore computes it.

    `callback_fn()` gives (model, network, dataset, metrics); the weights are put into `network`.
    Errors: ValueError if the metrics have no Loss, or the samples are less than a batch.
    """

    def __init__(self, callback_fn: Callable[[], tuple], num_samples: int):
        model, self._network, dataset, metrics = callback_fn()
        self._metric = _loss_of(metrics)
        count = num_samples // dataset.get_batch_size()
        if not count:
            raise errors.value_error(
                _OWNER,
                f"num_samples is {num_samples}, less than one batch of {dataset.get_batch_size()} samples",
            )
        # Read once: each point is measured on the same samples, even if the pipeline shuffles.
        self._batches = list(dataset.take(count).create_tuple_iterator(num_epochs=1))
        loss_fn = model._loss_fn
        predict = model.predict_network
        self._loss = predict if loss_fn is None else WithLossCell(predict, loss_fn)
        self._parameters = {parameter.name: parameter for parameter in self._network.get_parameters()}
        self._before = {name: Tensor(one.asnumpy().copy()) for name, one in self._parameters.items()}

    def __call__(self, plane: Plane, points: np.ndarray) -> np.ndarray:
        """Losses [n] at points [n, 2]."""
        self._loss.set_train(True)
        found = np.empty(len(points), np.float64)
        for place, (x, y) in enumerate(points.tolist()):
            for name, value in plane.at(x, y).items():
                if name in self._parameters:
                    self._parameters[name].set_data(Tensor(value))
            self._metric.clear()
            for batch in self._batches:
                outputs = self._loss(*batch)
                self._metric.update(outputs[0] if isinstance(outputs, tuple) else outputs)
            found[place] = self._metric.eval()
        return found

    def restore(self) -> None:
        """Give the network the weights that it came with."""
        for name, value in self._before.items():
            self._parameters[name].set_data(value)


def _loss_of(metrics) -> Loss:
    found = get_metrics(metrics) if metrics else {}
    for metric in found.values():
        if isinstance(metric, Loss):
            return metric
    raise errors.value_error(
        _OWNER, f"the metrics of callback_fn must have a Loss, but got {sorted(found)}",
        hint='return {"Loss": nn.Loss()} as the fourth value',
    )  # fmt: skip
