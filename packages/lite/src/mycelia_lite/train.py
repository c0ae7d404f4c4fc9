"""Loops of training and evaluation on the device, their callbacks and metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mycelia_lite.model import Model


@dataclass
class Progress:
    """How far a training is: `epoch` and `step` count from 0, `step` within the epoch; `losses`: of its steps
    so far; `epochs`: means of those that are done.
    """

    model: Model
    epoch: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)


class TrainCallBack:
    """What is told how a training goes. `epoch_end` returns False to end it."""

    def begin(self, progress: Progress) -> None:
        """Before the first step."""

    def end(self, progress: Progress) -> None:
        """After the last step."""

    def epoch_begin(self, progress: Progress) -> None:
        """Before the first step of an epoch."""

    def epoch_end(self, progress: Progress) -> bool | None:
        """After the last step of an epoch."""

    def step_begin(self, progress: Progress) -> None:
        """Before a step: the inputs hold its batch."""

    def step_end(self, progress: Progress) -> None:
        """After a step: `progress.losses[-1]` is its loss."""


class LossMonitor(TrainCallBack):
    """Prints the loss of every n-th step, or, for 0, the mean of each epoch."""

    def __init__(self, print_every_n_steps: int = 0, tell: Callable[[str], None] = print) -> None:
        self._every, self._tell = print_every_n_steps, tell

    def step_end(self, progress: Progress) -> None:
        if self._every and (progress.step + 1) % self._every == 0:
            self._tell(f"epoch {progress.epoch} step {progress.step} loss {progress.losses[-1]:.6g}")

    def epoch_end(self, progress: Progress) -> None:
        if not self._every:
            self._tell(f"epoch {progress.epoch} mean loss {np.mean(progress.losses):.6g}")


class TimeMonitor(TrainCallBack):
    """Tells the time of each epoch and of a step in it, in milliseconds."""

    def __init__(self, tell: Callable[[str], None] = print) -> None:
        self._tell, self._begin = tell, 0.0

    def epoch_begin(self, progress: Progress) -> None:
        self._begin = time.perf_counter()

    def epoch_end(self, progress: Progress) -> None:
        taken, steps = 1e3 * (time.perf_counter() - self._begin), progress.step + 1
        self._tell(f"epoch {progress.epoch} took {taken:.1f} ms, {taken / steps:.3f} ms a step")


class LRScheduler(TrainCallBack):
    """Sets ``rate(present rate, epoch)`` as the learning rate after every `step`-th epoch."""

    def __init__(self, rate: Callable[[float, int], float], step: int = 1) -> None:
        if step < 1:
            raise ValueError(f"step must be 1 or more, but got {step}")
        self._rate, self._step = rate, step

    def epoch_end(self, progress: Progress) -> None:
        if (progress.epoch + 1) % self._step == 0:
            model = progress.model
            model.set_learning_rate(self._rate(model.get_learning_rate(), progress.epoch))


def multiplicative(factor: float) -> Callable[[float, int], float]:
    """For `LRScheduler`: the rate times `factor`."""
    return lambda rate, epoch: rate * factor


class CkptSaver(TrainCallBack):
    """Writes ``prefix`` + ``_trained_epoch_N.ms``, a model to go on training, after every n-th epoch.

    The model is saved between two virtual batches alone. Errors: RuntimeError.
    """

    def __init__(self, save_every_n: int, filename_prefix: str) -> None:
        if save_every_n < 1:
            raise ValueError(f"save_every_n must be 1 or more, but got {save_every_n}")
        self._every, self._prefix = save_every_n, filename_prefix

    def epoch_end(self, progress: Progress) -> None:
        if (progress.epoch + 1) % self._every == 0:
            path = f"{self._prefix}_trained_epoch_{progress.epoch}.ms"
            progress.model.export(path, export_inference_only=False)


class Metric:
    """A number for how good answers are. `name`: under which `evaluate` gives it."""

    name = ""

    def clear(self) -> None:
        """Forget all batches."""
        raise NotImplementedError(f"{type(self).__name__} does not define clear")

    def update(self, outputs: Sequence[np.ndarray], labels: np.ndarray) -> None:
        """Take the answers to a batch."""
        raise NotImplementedError(f"{type(self).__name__} does not define update")

    def eval(self) -> float:
        """The number for the batches so far."""
        raise NotImplementedError(f"{type(self).__name__} does not define eval")


class AccuracyMetrics(Metric):
    """The share of answers [N, C] whose largest number is at the label, a class [N] or one-hot [N, C]."""

    name = "accuracy"

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._right = self._all = 0

    def update(self, outputs: Sequence[np.ndarray], labels: np.ndarray) -> None:
        found = outputs[0]
        if found.ndim != 2 or labels.shape[:1] != found.shape[:1] or labels.ndim > 2:
            raise ValueError(f"answers of shape {found.shape} do not fit labels of shape {labels.shape}")
        classes = labels if labels.ndim == 1 else labels.argmax(1)
        self._right += int((found.argmax(1) == classes).sum())
        self._all += len(found)

    def eval(self) -> float:
        if not self._all:
            raise RuntimeError("there are no answers: the dataset is empty")
        return self._right / self._all


class TrainAccuracy(TrainCallBack):
    """Tells the accuracy on `dataset` after every n-th epoch."""

    def __init__(self, dataset: Iterable, every_n: int = 1, tell: Callable[[str], None] = print) -> None:
        self._dataset, self._every, self._tell = dataset, every_n, tell

    def epoch_end(self, progress: Progress) -> None:
        if (progress.epoch + 1) % self._every == 0:
            found = progress.model.evaluate(self._dataset, [AccuracyMetrics()])
            self._tell(f"epoch {progress.epoch} accuracy {found['accuracy']:.4f}")


# ---- loops -------------------------------------------------------------------------------------------------


def fit(model: Any, epochs: int, dataset: Iterable, callbacks: Sequence[TrainCallBack]) -> list[float]:
    """`Model.train`."""
    if isinstance(epochs, bool) or not isinstance(epochs, int):
        raise TypeError(f"epochs must be an int, but got {epochs!r}")
    for callback in callbacks:
        if not isinstance(callback, TrainCallBack):
            raise TypeError(f"callbacks must be TrainCallBacks, but got {type(callback).__name__}")
    if epochs > 1 and iter(dataset) is dataset:
        raise TypeError("dataset is an iterator, which has its batches once: give a list or the like")
    progress, trained_before = Progress(model), model.get_train_mode()
    model.set_train_mode(True)
    try:
        _tell(callbacks, "begin", progress)
        for progress.epoch in range(epochs):
            progress.losses = []
            _tell(callbacks, "epoch_begin", progress)
            for progress.step, _ in enumerate(_batches(model, dataset)):
                _tell(callbacks, "step_begin", progress)
                losses = [float(t.get_data_to_numpy().mean()) for t in model.run_step()]
                progress.losses.append(losses[0])
                _tell(callbacks, "step_end", progress)
            if not progress.losses:
                raise ValueError("dataset has no batch")
            progress.epochs.append(float(np.mean(progress.losses)))
            answers = _tell(callbacks, "epoch_end", progress)
            model.set_train_mode(True)  # a callback may have let it answer
            if any(answer is False for answer in answers):
                break
        _tell(callbacks, "end", progress)
    finally:
        model.set_train_mode(trained_before)
    return progress.epochs


def measure(model: Any, dataset: Iterable, metrics: Sequence[Metric]) -> dict[str, float]:
    """`Model.evaluate`."""
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise TypeError(f"metrics must be Metrics, but got {type(metric).__name__}")
        metric.clear()
    trained_before = model.get_train_mode()
    model.set_train_mode(False)
    try:
        for batch in _batches(model, dataset):
            outputs = [t.get_data_to_numpy() for t in model.run_step()]
            for metric in metrics:
                metric.update(outputs, np.asarray(batch[-1]))
    finally:
        model.set_train_mode(trained_before)
    return {metric.name: metric.eval() for metric in metrics}


def _tell(callbacks: Sequence[TrainCallBack], what: str, progress: Progress) -> list[Any]:
    return [getattr(callback, what)(progress) for callback in callbacks]


def _batches(model: Any, dataset: Iterable) -> Iterator[Sequence]:
    """The batches, each after the inputs hold it."""
    for batch in dataset:
        inputs = model.get_inputs()
        if not isinstance(batch, (tuple, list)) or len(batch) != len(inputs):
            given = len(batch) if isinstance(batch, (tuple, list)) else type(batch).__name__
            raise ValueError(f"a batch must be a tuple of {len(inputs)} arrays, the inputs, but got {given}")
        arrays = [
            np.asarray(a.asnumpy() if hasattr(a, "asnumpy") else a, t.dtype.numpy)
            for a, t in zip(batch, inputs)
        ]
        if any(list(a.shape) != t.shape for a, t in zip(arrays, inputs)):
            model.resize(inputs, [a.shape for a in arrays])
        for tensor, array in zip(inputs, arrays):
            tensor.set_data_from_numpy(array)
        yield arrays
