"""Image transforms of the dataset pipeline; see `dataset/vision/native.py`."""

import numpy as np

def load_jpeg(path: str) -> str: ...
def jpeg_shape(data: np.ndarray) -> tuple[int, int, bool] | None: ...
def transform(
    source: np.ndarray,
    box: tuple[int, int, int, int],
    size: tuple[int, int],
    mode: int,
    window: tuple[int, int, int, int],
    flips: tuple[bool, bool],
    planar: bool,
    table: np.ndarray | None,
) -> np.ndarray | None: ...
