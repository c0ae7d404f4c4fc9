"""Loss, mean absolute and mean squared error."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.nn.metrics.base import Metric, rearrange_inputs


class Loss(Metric):
    """The mean over updates of the loss, a number or the mean of a vector of them."""

    _added = ("_sum", "_count")

    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self._sum, self._count = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs):
        (loss,) = self._arrays(inputs, 1)
        if loss.ndim > 1 or not loss.size:
            raise errors.value_error(
                "Loss", f"the loss must be a number or a vector, but its shape is {loss.shape}"
            )
        self._sum += float(loss.mean())
        self._count += 1

    def eval(self):
        self._require_updates(self._count)
        return self._sum / self._count


class _Error(Metric):
    """Sums of element errors over the number of samples (first dimension)."""

    _added = ("_sum", "_samples")

    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self._sum, self._samples = 0.0, 0

    def _error(self, difference: np.ndarray) -> float:
        raise errors.error(errors.NotSupportedError, type(self).__name__, "_error() is not defined")

    @rearrange_inputs
    def update(self, *inputs):
        predictions, labels = self._arrays(inputs, 2)
        self._sum += self._error(labels.reshape(predictions.shape) - predictions)
        self._samples += predictions.shape[0]

    def eval(self):
        self._require_updates(self._samples)
        return self._sum / self._samples


class MAE(_Error):
    """Sum of absolute differences over the number of samples."""

    def _error(self, difference):
        return float(np.abs(difference).sum())


class MSE(_Error):
    """Sum of squared differences over the number of samples."""

    def _error(self, difference):
        return float(np.square(difference).sum())
