"""Images turned and bent: rotation, affine and perspective maps, and their random forms."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset.execution import rng_streams
from mycelia.dataset.vision import checks, resample
from mycelia.dataset.vision.base import ImageTransform, pil_mode, pillow
from mycelia.dataset.vision.enums import Inter
from mycelia.engine.base import errors


def _turning(op: str, resample_, expand, center, fill_value):
    checks.kind(op, "resample", resample_, Inter)
    checks.kind(op, "expand", expand, bool)
    if center is not None:
        checks.kind(op, "center", center, (tuple, list))
        if not isinstance(center, tuple) or len(center) != 2:
            raise errors.value_error(op, f"center must be a tuple (x, y), but got {center!r}")
        for v in center:
            checks.number(op, "center", v, -(2**31), 2**31 - 1)
    return checks.colour(op, fill_value)


class Rotate(ImageTransform):
    """The image turned counter-clockwise by `degrees` around `center` (x, y)."""

    batches = True

    def __init__(self, degrees, resample=Inter.NEAREST, expand=False, center=None, fill_value=0):
        checks.number("Rotate", "degrees", degrees)
        self.fill_value = _turning("Rotate", resample, expand, center, fill_value)
        self.degrees, self.resample, self.expand, self.center = degrees % 360, resample, expand, center

    def on_array(self, image):
        return array_rotate(self, image, self.degrees)


def array_rotate(transform, image: np.ndarray, degrees: float) -> np.ndarray:
    """`image` turned, with resample, expand, center and fill_value of `transform`."""
    if transform.resample == Inter.ANTIALIAS:
        raise errors.type_error(type(transform).__name__, "ANTIALIAS is for PIL images only")
    fill = transform.fill_value[::-1]  # MindSpore takes this colour as blue, green, red
    return resample.rotate(image, degrees, transform.resample, transform.expand, transform.center, fill)


class RandomRotation(ImageTransform):
    """`Rotate` by a random angle: within -degrees..degrees, or in a range."""

    random = True
    batches = True

    def __init__(self, degrees, resample=Inter.NEAREST, expand=False, center=None, fill_value=0):
        checks.degrees("RandomRotation", degrees)
        self.fill_value = _turning("RandomRotation", resample, expand, center, fill_value)
        if isinstance(degrees, checks.NUMBER):
            degrees = (-(degrees % 360), degrees % 360)
        elif degrees[1] - degrees[0] >= 360:
            degrees = (-180, 180)
        else:
            low, high = degrees[0] % 360, degrees[1] % 360
            degrees = (low, high + 360 if low > high else high)
        self.degrees, self.resample, self.expand, self.center = degrees, resample, expand, center

    def on_array(self, image):
        return array_rotate(self, image, self.draws.uniform(*self.degrees))

    def on_pil(self, image):
        mode = pil_mode("RandomRotation", self.resample)
        angle = rng_streams.python().uniform(*self.degrees) % 360.0
        if self.resample == Inter.ANTIALIAS and (angle not in (0, 90, 180, 270) or self.center):
            raise errors.value_error("RandomRotation", "ANTIALIAS can only turn by multiples of 90 degrees")
        return image.rotate(angle, mode, self.expand, self.center, fillcolor=self.fill_value)


class Affine(ImageTransform):
    """Turn, shear, scale around the middle, and move by `translate` (x, y) in parts of the image's size."""

    def __init__(self, degrees, translate, scale, shear, resample=Inter.NEAREST, fill_value=0):
        checks.number("Affine", "degrees", degrees, -180, 180)
        checks.kind("Affine", "translate", translate, (list, tuple))
        if len(translate) != 2:
            raise errors.type_error("Affine", f"The length of translate should be 2. It is {translate!r}")
        for i, v in enumerate(translate):
            checks.number("Affine", f"translate[{i}]", v, -1.0, 1.0)
        checks.number("Affine", "scale", scale, 0, above=True)
        checks.kind("Affine", "shear", shear, (int, float, tuple, list))
        shear = (shear, 0.0) if isinstance(shear, checks.NUMBER) else tuple(shear)
        if len(shear) != 2:
            raise errors.type_error("Affine", f"The length of shear should be 2. It is {shear!r}")
        for i, v in enumerate(shear):
            checks.number("Affine", f"shear[{i}]", v, -180, 180)
        checks.kind("Affine", "resample", resample, Inter)
        self.fill_value = checks.colour("Affine", fill_value)
        self.degrees, self.translate, self.scale = degrees, tuple(translate), scale
        self.shear, self.resample = shear, resample

    def on_array(self, image):
        height, width = image.shape[:2]
        move = (self.translate[0] * width, self.translate[1] * height)
        return array_affine(self, image, self.degrees, move, self.scale, self.shear)


def array_affine(transform, image: np.ndarray, degrees, move, scale, shear) -> np.ndarray:
    """`image` through an affine map, with resample and fill_value of `transform`."""
    if transform.resample == Inter.ANTIALIAS:
        raise errors.type_error(type(transform).__name__, "ANTIALIAS is for PIL images only")
    height, width = image.shape[:2]
    matrix = resample.affine_matrix(width, height, degrees, move, scale, shear)
    return resample.warp_affine(image, matrix, height, width, transform.resample, transform.fill_value)


class RandomAffine(ImageTransform):
    """`Affine` with random numbers in the ranges of degrees, scale, shear (x, then y) and translate.

    `translate`, in parts of the size: arrays take (least x, most x, least y, most y), the last two optional;
    PIL images (most x, most y).
    """

    random = True

    def __init__(self, degrees, translate=None, scale=None, shear=None, resample=Inter.NEAREST, fill_value=0):
        op = "RandomAffine"
        checks.degrees(op, degrees)
        self.degrees = (-degrees, degrees) if isinstance(degrees, checks.NUMBER) else tuple(degrees)
        self.translate = self._moves(translate)
        self.scale = (1.0, 1.0) if scale is None else checks.pair(op, "scale", scale, 0)
        if self.scale[1] <= 0:
            raise errors.value_error(op, f"scale must end above 0, but got {scale!r}")
        self.shear = self._shears(shear)
        checks.kind(op, "resample", resample, Inter)
        self.fill_value, self.resample = checks.colour(op, 0 if fill_value is None else fill_value), resample

    @staticmethod
    def _moves(translate):
        if translate is None:
            return (0.0, 0.0, 0.0, 0.0)
        checks.kind("RandomAffine", "translate", translate, (list, tuple))
        for i, v in enumerate(translate):
            checks.kind("RandomAffine", f"translate[{i}]", v, checks.NUMBER)
        if len(translate) not in (2, 4):
            raise errors.type_error(
                "RandomAffine", f"translate must have 2 or 4 values, but got {translate!r}"
            )
        for i, v in enumerate(translate):
            checks.between("RandomAffine", f"translate[{i}]", v, -1.0, 1.0)
        return tuple(translate)

    @staticmethod
    def _shears(shear):
        if shear is None:
            return (0.0, 0.0, 0.0, 0.0)
        checks.kind("RandomAffine", "shear", shear, (int, float, list, tuple))
        if isinstance(shear, checks.NUMBER):
            checks.between("RandomAffine", "shear", shear, 0, checks.LARGEST, above=True)
            return (-shear, shear, 0.0, 0.0)
        if len(shear) not in (2, 4):
            raise errors.type_error("RandomAffine", f"shear must have 2 or 4 values, but got {shear!r}")
        ranges = [checks.pair("RandomAffine", "shear", shear[i : i + 2]) for i in range(0, len(shear), 2)]
        return (*ranges[0], *(ranges[1] if len(ranges) == 2 else (0.0, 0.0)))

    def on_array(self, image):
        height, width = image.shape[:2]
        uniform = self.draws.uniform
        moves = self.translate
        x_range, y_range = moves[:2], moves[2:] if len(moves) == 4 else (0.0, 0.0)
        degrees = uniform(*self.degrees)
        move = (uniform(*sorted(x_range)) * width, uniform(*sorted(y_range)) * height)
        scale = uniform(*self.scale)
        return array_affine(
            self, image, degrees, move, scale, (uniform(*self.shear[:2]), uniform(*self.shear[2:]))
        )

    def on_pil(self, image):
        mode = pil_mode("RandomAffine", self.resample)
        width, height = image.size
        angle = math.radians(rng_streams.python().uniform(*self.degrees))
        reach = self.translate[0] * width, self.translate[1] * height
        move = [round(rng_streams.python().uniform(-r, r)) for r in reach]
        scale = rng_streams.python().uniform(*self.scale)
        sx, sy = (math.radians(rng_streams.python().uniform(*self.shear[i : i + 2])) for i in (0, 2))
        # Pillow asks for the way back: from a place in the result to one in the image.
        shrink = 1.0 / scale / math.cos(sx - sy)
        a, b = math.cos(angle + sx) * shrink, math.sin(angle + sx) * shrink
        d, e = -math.sin(angle + sy) * shrink, math.cos(angle + sy) * shrink
        cx, cy = width * 0.5 + 0.5, height * 0.5 + 0.5
        x, y = -cx - move[0], -cy - move[1]
        matrix = (a, b, a * x + b * y + cx, d, e, d * x + e * y + cy)
        fill = self.fill_value if len(image.getbands()) == 3 else self.fill_value[0]
        return image.transform(image.size, pillow().Transform.AFFINE, matrix, mode, fillcolor=fill)


def pil_perspective(op: str, image, start_points, end_points, mode: Inter):
    """A PIL image with four points moved to others."""
    matrix = resample.perspective_matrix(end_points, start_points).reshape(-1)[:8]
    return image.transform(image.size, pillow().Transform.PERSPECTIVE, matrix.tolist(), pil_mode(op, mode))


class Perspective(ImageTransform):
    """The image with four points (x, y) moved to four others."""

    def __init__(self, start_points, end_points, interpolation: Inter = Inter.BILINEAR):
        checks.points("Perspective", "start_points", start_points)
        checks.points("Perspective", "end_points", end_points)
        checks.kind("Perspective", "interpolation", interpolation, Inter)
        self.start_points, self.end_points, self.interpolation = start_points, end_points, interpolation

    def on_array(self, image):
        if self.interpolation == Inter.ANTIALIAS:
            raise errors.type_error("Perspective", "ANTIALIAS is for PIL images only")
        matrix = resample.perspective_matrix(self.start_points, self.end_points)
        return resample.warp_perspective(image, matrix, self.interpolation)

    def on_pil(self, image):
        return pil_perspective("Perspective", image, self.start_points, self.end_points, self.interpolation)


class RandomPerspective(ImageTransform):
    """A PIL image seen from a random side, with a probability."""

    random = True

    def __init__(
        self, distortion_scale: float = 0.5, prob: float = 0.5, interpolation: Inter = Inter.BICUBIC
    ):
        checks.number("RandomPerspective", "distortion_scale", distortion_scale, 0.0, 1.0, kinds=(float,))
        checks.number("RandomPerspective", "prob", prob, 0.0, 1.0, kinds=(float,))
        checks.kind("RandomPerspective", "interpolation", interpolation, Inter)
        self.distortion_scale, self.prob, self.interpolation = distortion_scale, prob, interpolation

    def on_array(self, image):
        raise errors.value_error("RandomPerspective", "the image must be a PIL image, but got an array")

    def on_pil(self, image):
        if self.prob <= rng_streams.python().random():
            return image
        width, height = image.size
        dx, dy = int(width / 2 * self.distortion_scale), int(height / 2 * self.distortion_scale)
        low_x, low_y, high_x, high_y = (
            (0, dx),
            (0, dy),
            (width - dx - 1, width - 1),
            (height - dy - 1, height - 1),
        )
        sides = ((low_x, low_y), (high_x, low_y), (high_x, high_y), (low_x, high_y))
        targets = [(rng_streams.python().randint(*x), rng_streams.python().randint(*y)) for x, y in sides]
        corners = [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]
        return pil_perspective("RandomPerspective", image, corners, targets, self.interpolation)
