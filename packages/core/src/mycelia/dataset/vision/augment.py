"""Augmentation by policies: chosen transforms with chosen strengths."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset.execution import rng_streams
from mycelia.dataset.vision import checks, color, color_kernels, crops, resample
from mycelia.dataset.vision.base import ImageTransform, is_pil
from mycelia.dataset.vision.enums import AutoAugmentPolicy, Inter
from mycelia.engine.base import errors

# Sub-policies of Cubuk et al. 2019 (appendix): two steps of (name, probability, strength of 0..9).
_POLICIES = {
    "imagenet": """
    Posterize .4 8 Rotate .6 9; Solarize .6 5 AutoContrast .6 -; Equalize .8 - Equalize .6 -;
    Posterize .6 7 Posterize .6 6; Equalize .4 - Solarize .2 4; Equalize .4 - Rotate .8 8;
    Solarize .6 3 Equalize .6 -; Posterize .8 5 Equalize 1 -; Rotate .2 3 Solarize .6 8;
    Equalize .6 - Posterize .4 6; Rotate .8 8 Color .4 0; Rotate .4 9 Equalize .6 -;
    Equalize 0 - Equalize .8 -; Invert .6 - Equalize 1 -; Color .6 4 Contrast 1 8;
    Rotate .8 8 Color 1 2; Color .8 8 Solarize .8 7; Sharpness .4 7 Invert .6 -;
    ShearX .6 5 Equalize 1 -; Color .4 0 Equalize .6 -; Equalize .4 - Solarize .2 4;
    Solarize .6 5 AutoContrast .6 -; Invert .6 - Equalize 1 -; Color .6 4 Contrast 1 8;
    Equalize .8 - Equalize .6 -""",
    "cifar10": """
    Invert .1 - Contrast .2 6; Rotate .7 2 TranslateX .3 9; Sharpness .8 1 Sharpness .9 3;
    ShearY .5 8 TranslateY .7 9; AutoContrast .5 - Equalize .9 -; ShearY .2 7 Posterize .3 7;
    Color .4 3 Brightness .6 7; Sharpness .3 9 Brightness .7 9; Equalize .6 - Equalize .5 -;
    Contrast .6 7 Sharpness .6 5; Color .7 7 TranslateX .5 8; Equalize .3 - AutoContrast .4 -;
    TranslateY .4 3 Sharpness .2 6; Brightness .9 6 Color .2 8; Solarize .5 2 Invert 0 -;
    Equalize .2 - AutoContrast .6 -; Equalize .2 - Equalize .6 -; Color .9 9 Equalize .6 -;
    AutoContrast .8 - Solarize .2 8; Brightness .1 3 Color .7 0; Solarize .4 5 AutoContrast .9 -;
    TranslateY .9 9 TranslateY .7 9; AutoContrast .9 - Solarize .8 3; Equalize .8 - Invert .1 -;
    TranslateY .7 9 AutoContrast .9 -""",
    "svhn": """
    ShearX .9 4 Invert .2 -; ShearY .9 8 Invert .7 -; Equalize .6 - Solarize .6 6;
    Invert .9 - Equalize .6 -; Equalize .6 - Rotate .9 3; ShearX .9 4 AutoContrast .8 -;
    ShearY .9 8 Invert .4 -; ShearY .9 5 Solarize .2 6; Invert .9 - AutoContrast .8 -;
    Equalize .6 - Rotate .9 3; ShearX .9 4 Solarize .3 3; ShearY .8 8 Invert .7 -;
    Equalize .9 - TranslateY .6 6; Invert .9 - Equalize .6 -; Contrast .3 3 Rotate .8 4;
    Invert .8 - TranslateY 0 2; ShearY .7 6 Solarize .4 8; Invert .6 - Rotate .8 4;
    ShearY .3 7 TranslateX .9 3; ShearX .1 6 Invert .6 -; Solarize .7 2 TranslateY .6 7;
    ShearY .8 4 Invert .8 -; ShearX .7 9 TranslateY .8 3; ShearY .8 5 AutoContrast .7 -;
    ShearX .7 2 Invert .1 -""",
}
_SIGNED = {
    "ShearX",
    "ShearY",
    "TranslateX",
    "TranslateY",
    "Rotate",
    "Brightness",
    "Color",
    "Contrast",
    "Sharpness",
}
_FACTORS = {
    "Brightness": color_kernels.brightness,
    "Color": color_kernels.saturation,
    "Contrast": color_kernels.contrast,
    "Sharpness": color_kernels.sharpness,
}
# In the order of their draws.
_NAMES = (
    "AutoContrast Brightness Color Contrast Equalize Identity Posterize Rotate Sharpness ShearX ShearY "
    "Solarize TranslateX TranslateY"
).split()
_PLAIN = {"AutoContrast", "Equalize", "Identity"}


def _policy(name: str) -> list[list[tuple[str, float, int]]]:
    result = []
    for line in _POLICIES[name].split(";"):
        words = line.split()
        triples = [words[i : i + 3] for i in (0, 3)]
        result.append(
            [(op, float(chance), 0 if level == "-" else int(level)) for op, chance, level in triples]
        )
    return result


def _strength(name: str, level: int, bins: int, width: int, height: int, wide: bool) -> float:
    """The strength of a step at `level` of `bins`; `wide` is the range of TrivialAugmentWide."""
    part = level / (bins - 1)
    if name.startswith("Shear"):
        return part * (0.99 if wide else 0.3)
    if name.startswith("Translate"):
        return part * (32.0 if wide else 150.0 / 331.0 * (width if name == "TranslateX" else height))
    if name == "Rotate":
        return part * (135.0 if wide else 30.0)
    if name == "Posterize":
        return 8 - round(level / ((bins - 1) / (6 if wide else 4)))
    if name == "Solarize":
        return 255.0 * (1 - part)
    return part * (0.99 if wide else 0.9)


class _Policy(ImageTransform):
    """Steps of a policy on arrays with 1 or 3 channels."""

    random = True

    def step(self, image: np.ndarray, name: str, strength: float) -> np.ndarray:
        """One step."""
        height, width = image.shape[:2]
        if name == "Identity":
            return image
        if name in _FACTORS:
            return _FACTORS[name](image, 1 + strength)
        if name == "Rotate":
            return resample.rotate(image, strength, self.interpolation, False, None, self.fill_value)
        if name in ("AutoContrast", "Equalize", "Invert"):
            return getattr(color, name)().on_array(image)
        if name == "Posterize":
            return color.Posterize(int(strength)).on_array(image)
        if name == "Solarize":
            return color_kernels.solarize(image, strength, strength)
        # By pixels; MindSpore 2.10 moves by as many widths of the image, which leaves nothing of it.
        move, shear = [0.0, 0.0], [0.0, 0.0]
        (move if name.startswith("Translate") else shear)["XY".index(name[-1])] = (
            float(int(strength)) if name.startswith("Translate") else math.degrees(strength)
        )
        matrix = resample.affine_matrix(width, height, 0.0, move, 1.0, shear)
        return resample.warp_affine(image, matrix, height, width, self.interpolation, self.fill_value)

    def signed_step(self, image, name: str, level: int, bins: int, wide: bool, negative: bool):
        """One step, with a sign where it has one."""
        height, width = image.shape[:2]
        strength = _strength(name, level, bins, width, height, wide)
        return self.step(image, name, -strength if negative and name in _SIGNED else strength)

    def below(self, count: int) -> int:
        """An int in [0, count), 0 twice as likely as the others: as MindSpore draws here."""
        return self.draws.integer(0, count) % count

    def _common(self, interpolation, fill_value) -> None:
        checks.kind(type(self).__name__, "interpolation", interpolation, Inter)
        self.interpolation = interpolation
        self.fill_value = checks.colour(type(self).__name__, fill_value)


class AutoAugment(_Policy):
    """One of 25 learned pairs of steps. Images [H, W, 3]. Source: Cubuk et al. 2019."""

    def __init__(self, policy=AutoAugmentPolicy.IMAGENET, interpolation=Inter.NEAREST, fill_value=0):
        checks.kind("AutoAugment", "policy", policy, AutoAugmentPolicy)
        self.policy = policy
        self._common(interpolation, fill_value)
        self._steps = _policy(policy.value)

    def on_array(self, image):
        self.need_channels(image, 3)
        steps = self._steps[self.draws.integer(0, len(self._steps) - 1)]
        chances = [self.draws.uniform() for _ in steps]
        negative = [self.draws.integer(0, 1) == 0 for _ in steps]
        for (name, chance, level), drawn, minus in zip(steps, chances, negative):
            if drawn <= chance:
                image = self.signed_step(image, name, level, 10, False, minus)
        return image.copy()


class RandAugment(_Policy):
    """`num_ops` random steps of one strength. Images [H, W, 3]. Source: Cubuk et al. 2020."""

    def __init__(
        self, num_ops=2, magnitude=9, num_magnitude_bins=31, interpolation=Inter.NEAREST, fill_value=0
    ):
        op = "RandAugment"
        checks.integer(op, "num_ops", num_ops, 0, checks.LARGEST)
        checks.integer(op, "num_magnitude_bins", num_magnitude_bins, 2, checks.LARGEST)
        checks.integer(op, "magnitude", magnitude, 0, num_magnitude_bins - 1)
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins
        self._common(interpolation, fill_value)

    def on_array(self, image):
        self.need_channels(image, 3)
        for _ in range(self.num_ops):
            name = _NAMES[self.below(len(_NAMES))]
            negative = self.below(2) == 1
            image = self.signed_step(image, name, self.magnitude, self.num_magnitude_bins, False, negative)
        return image.copy()


class TrivialAugmentWide(_Policy):
    """One random step of random strength. Images [H, W, 3]. Source: Mueller and Hutter 2021."""

    def __init__(self, num_magnitude_bins=31, interpolation=Inter.NEAREST, fill_value=0):
        checks.integer("TrivialAugmentWide", "num_magnitude_bins", num_magnitude_bins, 2, checks.LARGEST)
        self.num_magnitude_bins = num_magnitude_bins
        self._common(interpolation, fill_value)

    def on_array(self, image):
        self.need_channels(image, 3)
        name = _NAMES[self.below(len(_NAMES))]
        level = 0 if name in _PLAIN else self.below(self.num_magnitude_bins)
        negative = self.below(2) == 1
        return self.signed_step(image, name, level, self.num_magnitude_bins, True, negative).copy()


def _need_transform(op: str, name: str, value) -> None:
    if not callable(value):
        raise errors.type_error(op, f"{name} must be a transform or a function, but got {value!r}")


class UniformAugment(ImageTransform):
    """`num_ops` of `transforms`, each with a random probability. Source: Lingchen et al. 2020."""

    random = True

    def __init__(self, transforms, num_ops: int = 2):
        op = "UniformAugment"
        checks.integer(op, "num_ops", num_ops)
        if num_ops > len(transforms):
            raise errors.value_error(
                op, f"num_ops {num_ops} is larger than the list of {len(transforms)} transforms"
            )
        checks.kind(op, "transforms", transforms, (list, tuple))
        for i, transform in enumerate(transforms):
            _need_transform(op, f"transforms[{i}]", transform)
        self.transforms, self.num_ops = list(transforms), num_ops

    def __call__(self, *images):
        image = images if len(images) > 1 else images[0]
        if is_pil(image):
            for i in rng_streams.numpy().choice(len(self.transforms), self.num_ops, replace=False):
                chance = rng_streams.python().random()
                image = self.transforms[i](image.copy()) if rng_streams.python().random() < chance else image
            return image
        if not rng_streams.active():
            self.__dict__.pop("_draws", None)
        for transform in self.draws.sample(self.transforms, self.num_ops):
            if self.draws.uniform() < 0.5:
                image = transform(*image) if isinstance(image, tuple) else transform(image)
        return image


class RandomSelectSubpolicy(ImageTransform):
    """One random list of `policy`; of its (transform, probability) each is done with its probability."""

    random = True

    def __init__(self, policy):
        op = "RandomSelectSubpolicy"
        checks.kind(op, "policy", policy, list)
        if not policy:
            raise errors.value_error(op, "policy must not be empty")
        for i, steps in enumerate(policy):
            checks.kind(op, f"policy[{i}]", steps, list)
            if not steps:
                raise errors.value_error(op, f"policy[{i}] must not be empty")
            for j, step in enumerate(steps):
                if not isinstance(step, tuple) or len(step) != 2:
                    raise errors.value_error(
                        op, f"policy[{i}][{j}] must be a tuple (transform, probability), but got {step!r}"
                    )
                _need_transform(op, f"policy[{i}][{j}][0]", step[0])
                checks.between(op, f"policy[{i}][{j}][1]", step[1], 0, 1)
        self.policy = policy

    def __call__(self, *images):
        if not rng_streams.active():
            self.__dict__.pop("_draws", None)
        images = tuple(np.asarray(image) if is_pil(image) else image for image in images)
        for transform, chance in self.policy[self.draws.integer(0, len(self.policy) - 1)]:
            if self.draws.chance(chance):
                result = transform(*images)
                images = result if isinstance(result, tuple) else (result,)
        return images if len(images) > 1 else images[0]


class BoundingBoxAugment(ImageTransform):
    """A transform on the parts of the image inside of a random share `ratio` of its boxes.

    Shapes: image [H, W, C], boxes float [n, at least 4] of (x, y, width, height, ...) -> the same.
    """

    random = True

    def __init__(self, transform, ratio: float = 0.3):
        if not callable(transform):
            raise errors.type_error(
                "BoundingBoxAugment", f"transform must be a transform, but got {transform!r}"
            )
        checks.number("BoundingBoxAugment", "ratio", ratio, 0.0, 1.0)
        self.transform, self.ratio = transform, ratio

    def __call__(self, *columns):
        from mycelia.dataset.vision.bbox import need_boxes

        image, boxes = need_boxes(self, columns)
        if not rng_streams.active():
            self.__dict__.pop("_draws", None)
        image = image.copy()
        count = math.floor(self.ratio * len(boxes))
        for i in self.draws.generator().permutation(len(boxes))[:count]:
            x, y, width, height = (int(v) for v in boxes[i, :4])
            part = self.transform(crops.cut(self, image, y, x, height, width))
            if part.shape[:2] != (height, width):
                part = resample.resize(part, height, width, Inter.LINEAR)
            image[y : y + height, x : x + width] = part
        return image, boxes
