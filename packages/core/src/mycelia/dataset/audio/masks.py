"""Masks over parts of spectra, as augmentation."""

from __future__ import annotations

from mycelia.dataset import checks
from mycelia.dataset.audio.base import AudioTransform
from mycelia.dataset.transforms import RandomTransform


class MaskAlongAxis(AudioTransform):
    """`mask_width` rows (axis 1) or columns (axis 2) of [..., freq, time] replaced by `mask_value`."""

    rank = 2

    def __init__(self, mask_start, mask_width, mask_value, axis):
        self.start = checks.integer("MaskAlongAxis", "mask_start", mask_start, 0)
        self.width = checks.integer("MaskAlongAxis", "mask_width", mask_width)
        self.value = checks.number("MaskAlongAxis", "mask_value", mask_value)
        self.axis = checks.integer("MaskAlongAxis", "axis", axis, 1, 2)

    def change(self, sound):
        return self._masked(sound, self.start, self.width)

    def _masked(self, sound, start: int, width: int):
        size = sound.shape[self.axis - 3]
        if start + width > size:
            raise self.refuse(f"a mask of {width} from {start} on does not fit {size}")
        part = slice(start, start + width)
        sound[(..., part, slice(None)) if self.axis == 1 else (..., part)] = self.value
        return sound


class MaskAlongAxisIID(MaskAlongAxis, RandomTransform):
    """A mask of random place and width up to `mask_param` for each channel."""

    def __init__(self, mask_param, mask_value, axis):
        RandomTransform.__init__(self)
        self.param = checks.integer("MaskAlongAxisIID", "mask_param", mask_param, 0)
        self.value = checks.number("MaskAlongAxisIID", "mask_value", mask_value)
        self.axis = checks.integer("MaskAlongAxisIID", "axis", axis, 1, 2)

    def change(self, sound):
        size = sound.shape[self.axis - 3]
        if self.param > size:
            raise self.refuse(f"mask_param {self.param} is more than {size}")
        rows = sound.reshape(-1, *sound.shape[-2:])
        for row in rows:
            width = int(self.rng.integers(self.param + 1))
            self._masked(row, int(self.rng.integers(size - width + 1)), width)
        return rows.reshape(sound.shape)


class _Masking(MaskAlongAxis, RandomTransform):
    """Base of masks of one axis, random for each channel or alike and from `mask_start` on."""

    def _mask(self, iid_masks, what, mask_param, mask_start, mask_value):
        RandomTransform.__init__(self)
        name = type(self).__name__
        self.iid = checks.kind(name, "iid_masks", iid_masks, bool)
        for key, value in ((what, mask_param), ("mask_start", mask_start)):
            checks.number(name, key, checks.kind(name, key, value, int), 0)
        self.value = checks.number(name, "mask_value", mask_value, 0)
        self.param, self.start = mask_param, mask_start

    def change(self, sound):
        if self.iid:
            return MaskAlongAxisIID.change(self, sound)
        if self.param > sound.shape[self.axis - 3]:
            raise self.refuse(f"the mask of {self.param} is more than {sound.shape[self.axis - 3]}")
        return self._masked(sound, self.start, self.param)


class FrequencyMasking(_Masking):
    """`freq_mask_param` frequencies of [..., freq, time] masked."""

    axis = 1

    def __init__(self, iid_masks=False, freq_mask_param=0, mask_start=0, mask_value=0.0):
        self._mask(iid_masks, "freq_mask_param", freq_mask_param, mask_start, mask_value)


class TimeMasking(_Masking):
    """`time_mask_param` frames of [..., freq, time] masked."""

    axis = 2

    def __init__(self, iid_masks=False, time_mask_param=0, mask_start=0, mask_value=0.0):
        self._mask(iid_masks, "time_mask_param", time_mask_param, mask_start, mask_value)
