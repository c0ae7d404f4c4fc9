"""Which elements ONNX's Resize takes where rounding decides: as onnxruntime, for sizes known and open."""

from __future__ import annotations

import numpy as np
import pytest

from .onnx_models import answers, converted, model, node, write

# (mode of coordinates, of rounding, elements before, scale or size after) -> places of onnxruntime 1.32.
# In exact arithmetic each has another answer.
PLACES = {
    ("half_pixel_symmetric", "round_prefer_ceil", 3, 4.6): [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2],
    ("asymmetric", "round_prefer_ceil", 4, 3.2): [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3],
    ("pytorch_half_pixel", "floor", 6, 3.4): [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5],
    ("tf_half_pixel_for_nn", "round_prefer_ceil", 7, 0.6): [1, 3, 4, 6],
    ("tf_half_pixel_for_nn", "round_prefer_floor", 10, 14): [0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9],
    ("half_pixel", "ceil", 12, 1.8): [0, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 9, 10, 10, 11, 11],
    ("asymmetric", "floor", 14, 2): [0, 6],
    ("pytorch_half_pixel", "floor", 25, 7): [1, 4, 8, 12, 15, 19, 22],
    ("half_pixel_symmetric", "floor", 28, 4): [2, 10, 17, 23],
    ("half_pixel", "floor", 30, 18): [0, 2, 3, 5, 6, 8, 10, 11, 13, 15, 17, 18, 20, 22, 23, 25, 26, 28],
    # the number of elements follows from a product in float32
    ("half_pixel", "round_prefer_ceil", 6, 7 / 6): [0, 1, 2, 3, 3, 4, 5],
    # whatever the scale is, nothing changes where no size does
    ("half_pixel", "floor", 2, 1.4): [0, 1],
    ("tf_half_pixel_for_nn", "floor", 3, 1.3): [0, 1, 2],
    # versions before 11 take the next element when they shrink, the one before when they grow
    ("", "", 27, 0.7): [0, 2, 3, 5, 6, 8, 9, 10, 12, 13, 15, 16, 18, 19, 20, 22, 23, 25],
    ("", "", 5, 1.5): [0, 0, 1, 2, 2, 3, 4],
}


@pytest.mark.parametrize("kind", ["known", "open"])
@pytest.mark.parametrize("case", PLACES, ids=lambda c: "-".join(map(str, c)))
def test_places_are_those_of_onnxruntime(tmp_path, case, kind):
    how, rounding, n, given = case
    x = np.arange(n, dtype=np.float32)[None]
    weights = {"s": np.array([1, given]) if isinstance(given, int) else np.float32([1, given])}
    inputs = {"x": ("float32", (1, "n" if kind == "open" else n))}
    if how:
        names = "x - - s" if isinstance(given, int) else "x - s"
        resize = node("Resize", names, "y", coordinate_transformation_mode=how, nearest_mode=rounding)
    else:
        resize = node("Resize", "x s", "y")
    message = model([resize], inputs, "y", weights, opset=13 if how else 10)
    if kind == "open":
        found = converted(tmp_path, message)(x)
    else:
        found = answers(write(tmp_path / "m.onnx", message), x)
    np.testing.assert_array_equal(found[0][0], PLACES[case])
