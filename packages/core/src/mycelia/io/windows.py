"""Bytes read at many places in one step of NumPy."""

from __future__ import annotations

import numpy as np

_VIEWS = 64  # kept; blobs of many lengths need one each


class Windows:
    """A buffer as arrays of windows, one of each dtype at every byte."""

    def __init__(self, data):
        self._data, self._views = data, {}

    def take(self, dtype: str, places: np.ndarray) -> np.ndarray:
        """The values that begin at `places`, which must be inside of the data; copied."""
        view = self._views.get(dtype)
        if view is None:
            if len(self._views) > _VIEWS:
                self._views.clear()
            size = np.dtype(dtype).itemsize
            view = np.ndarray((max(0, len(self._data) - size + 1),), dtype, self._data, strides=(1,))
            self._views[dtype] = view
        return view[places]

    def rows(self, size: int, places: np.ndarray) -> np.ndarray:
        """[places, size]: the bytes from each place on."""
        if size == 0:
            return np.zeros((len(places), 0), np.uint8)
        return self.take(f"V{size}", places).view(np.uint8).reshape(len(places), size)

    def close(self) -> None:
        """Let the data go."""
        self._views.clear()


def spread(begins: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The numbers from each begin on, as many as `sizes` says, one row behind the other."""
    return np.arange(int(sizes.sum())) + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
