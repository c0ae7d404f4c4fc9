"""Filters of the time axis: biquads, and filters of any order."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset import checks
from mycelia.dataset.audio.base import AudioTransform
from mycelia.engine.base import errors


def recursive(sound: np.ndarray, a, b) -> np.ndarray:
    """``a[0] y[n] = sum b[k] x[n-k] - sum a[k] y[n-k]`` along the last axis, in float64."""
    a, b = np.asarray(a, np.float64) / a[0], np.asarray(b, np.float64) / a[0]
    rows = sound.reshape(-1, sound.shape[-1])
    out = np.zeros(rows.shape, np.float64)
    for k, factor in enumerate(b[: rows.shape[1]]):
        out[:, k:] += factor * rows[:, : rows.shape[1] - k]
    back = a[1:].tolist()
    if len(back) == 2:  # biquads: the usual case, worth a loop without slices
        a1, a2 = back
        for row in out:
            y1 = y2 = 0.0
            values = row.tolist()
            for i, v in enumerate(values):
                values[i] = y = v - a1 * y1 - a2 * y2
                y1, y2 = y, y1
            row[:] = values
    elif any(back):
        for n in range(1, out.shape[1]):
            for k, factor in enumerate(back[:n], 1):
                out[:, n] -= factor * out[:, n - k]
    return out.reshape(sound.shape)


class LFilter(AudioTransform):
    """The filter with these coefficients, a for the output, b for the input; clamped to [-1, 1]."""

    floats_only = True

    def __init__(self, a_coeffs, b_coeffs, clamp=True):
        name = type(self).__name__
        for key, values in (("a_coeffs", a_coeffs), ("b_coeffs", b_coeffs)):
            for value in checks.kind(name, key, values, list, tuple):
                checks.number(name, key, value)
        if len(a_coeffs) != len(b_coeffs):
            raise errors.value_error(
                name, f"a_coeffs and b_coeffs have {len(a_coeffs)} and {len(b_coeffs)} values"
            )
        self.a_coeffs, self.b_coeffs = a_coeffs, b_coeffs
        self.clamp = checks.kind(name, "clamp", clamp, bool)

    def _clamped(self, sound):
        return np.clip(sound, -1, 1) if self.clamp else sound

    def change(self, sound):
        return self._clamped(recursive(sound, self.a_coeffs, self.b_coeffs))


class Filtfilt(LFilter):
    """The filter forwards and then backwards: without a shift of phase."""

    def change(self, sound):
        forth = recursive(sound, self.a_coeffs, self.b_coeffs)
        back = recursive(forth[..., ::-1], self.a_coeffs, self.b_coeffs)
        return self._clamped(back)[..., ::-1]


class _TwoPole(AudioTransform):
    """Base of the biquads; `_set` takes b0 b1 b2 a0 a1 a2."""

    floats_only = True

    def _set(self, b0, b1, b2, a0, a1, a2):
        self.b, self.a = (b0, b1, b2), (a0, a1, a2)

    def _angle(self, sample_rate, freq, q, what="central_freq") -> tuple[float, float, float]:
        """The frequency's sine / (2 Q), cosine and sine; the arguments are checked."""
        name = type(self).__name__
        checks.nonzero(name, "sample_rate", sample_rate)
        checks.number(name, what, freq)
        checks.number(name, "Q", q, 0, 1, above=True)
        w = 2 * math.pi * freq / sample_rate
        return math.sin(w) / 2 / q, math.cos(w), math.sin(w)

    def change(self, sound):
        return np.clip(recursive(sound, self.a, self.b), -1, 1)


class Biquad(_TwoPole):
    """The filter of second order with these coefficients."""

    def __init__(self, b0, b1, b2, a0, a1, a2):
        for name, value in {"b0": b0, "b1": b1, "b2": b2, "a1": a1, "a2": a2}.items():
            checks.number("Biquad", name, value)
        checks.nonzero("Biquad", "a0", a0, int, float)
        self._set(b0, b1, b2, a0, a1, a2)


class AllpassBiquad(_TwoPole):
    """All frequencies pass; their phase turns around the central one."""

    def __init__(self, sample_rate, central_freq, Q=0.707):
        x, c, _ = self._angle(sample_rate, central_freq, Q)
        self._set(1 - x, -2 * c, 1 + x, 1 + x, -2 * c, 1 - x)


class BandBiquad(_TwoPole):
    """A band around the central frequency; `noise` is for unpitched sound."""

    def __init__(self, sample_rate, central_freq, Q=0.707, noise=False):
        _, c, _ = self._angle(sample_rate, central_freq, Q)
        checks.kind("BandBiquad", "noise", noise, bool)
        a2 = math.exp(-2 * math.pi * central_freq / Q / sample_rate)
        a1 = -4 * a2 / (1 + a2) * c
        b0 = math.sqrt(1 - a1 * a1 / (4 * a2)) * (1 - a2)
        if noise:
            b0 = math.sqrt(((1 + a2) ** 2 - a1 * a1) * (1 - a2) / (1 + a2))
        self._set(b0, 0, 0, 1, a1, a2)


class BandpassBiquad(_TwoPole):
    """A band passes; with `const_skirt_gain` its peak grows with Q."""

    def __init__(self, sample_rate, central_freq, Q=0.707, const_skirt_gain=False):
        x, c, s = self._angle(sample_rate, central_freq, Q)
        peak = s / 2 if checks.kind("BandpassBiquad", "const_skirt_gain", const_skirt_gain, bool) else x
        self._set(peak, 0, -peak, 1 + x, -2 * c, 1 - x)


class BandrejectBiquad(_TwoPole):
    """All but a band passes."""

    def __init__(self, sample_rate, central_freq, Q=0.707):
        x, c, _ = self._angle(sample_rate, central_freq, Q)
        self._set(1, -2 * c, 1, 1 + x, -2 * c, 1 - x)


class _Shelf(_TwoPole):
    """Base of what raises one side of the spectrum by `gain` dB."""

    def _shelf(self, gain: float, x: float, c: float, sign: int):
        g = math.exp(gain / 40 * math.log(10))
        t, low, high = 2 * math.sqrt(g) * x, (g - 1) * c * sign, (g + 1) * c * sign
        self._set(
            g * (g + 1 + low + t), -2 * sign * g * (g - 1 + high), g * (g + 1 + low - t),
            g + 1 - low + t, 2 * sign * (g - 1 - high), g + 1 - low - t,
        )  # fmt: skip


class BassBiquad(_Shelf):
    """Low tones raised or lowered by `gain` dB."""

    def __init__(self, sample_rate, gain, central_freq=100.0, Q=0.707):
        x, c, _ = self._angle(sample_rate, central_freq, Q)
        self._shelf(checks.number("BassBiquad", "gain", gain), x, c, -1)


class TrebleBiquad(_Shelf):
    """High tones raised or lowered by `gain` dB."""

    def __init__(self, sample_rate, gain, central_freq=3000, Q=0.707):
        x, c, _ = self._angle(sample_rate, central_freq, Q)
        self._shelf(checks.number("TrebleBiquad", "gain", gain), x, c, 1)


class DeemphBiquad(_Shelf):
    """The de-emphasis of compact discs; `sample_rate` is 44100 or 48000."""

    _of_rate = {44100: (5283, 0.4845, -9.477), 48000: (5356, 0.479, -9.62)}  # frequency, slope, gain

    def __init__(self, sample_rate):
        if checks.kind("DeemphBiquad", "sample_rate", sample_rate, int) not in self._of_rate:
            raise errors.value_error("DeemphBiquad", f"sample_rate must be 44100 or 48000, not {sample_rate}")
        freq, slope, gain = self._of_rate[sample_rate]
        w, g = 2 * math.pi * freq / sample_rate, math.exp(gain / 40 * math.log(10))
        x = math.sin(w) / 2 * math.sqrt((g + 1 / g) * (1 / slope - 1) + 2)
        self._shelf(gain, x, math.cos(w), 1)


class EqualizerBiquad(_TwoPole):
    """A band raised or lowered by `gain` dB."""

    def __init__(self, sample_rate, center_freq, gain, Q=0.707):
        x, c, _ = self._angle(sample_rate, center_freq, Q, "center_freq")
        g = math.exp(checks.number("EqualizerBiquad", "gain", gain) / 40 * math.log(10))
        self._set(1 + x * g, -2 * c, 1 - x * g, 1 + x / g, -2 * c, 1 - x / g)


class HighpassBiquad(_TwoPole):
    """High tones pass."""

    def __init__(self, sample_rate, cutoff_freq, Q=0.707):
        x, c, _ = self._angle(sample_rate, cutoff_freq, Q, "cutoff_freq")
        self._set((1 + c) / 2, -1 - c, (1 + c) / 2, 1 + x, -2 * c, 1 - x)


class LowpassBiquad(_TwoPole):
    """Low tones pass."""

    def __init__(self, sample_rate, cutoff_freq, Q=0.707):
        x, c, _ = self._angle(sample_rate, cutoff_freq, Q, "cutoff_freq")
        self._set((1 - c) / 2, 1 - c, (1 - c) / 2, 1 + x, -2 * c, 1 - x)


class RiaaBiquad(_TwoPole):
    """The equalization of vinyl records when they are played; 0 dB at 1 kHz."""

    _of_rate = {  # zeros, poles
        44100: ((-0.2014898, 0.9233820), (0.7083149, 0.9924091)),
        48000: ((-0.1766069, 0.9321590), (0.7396325, 0.9931330)),
        88200: ((-0.1168735, 0.9648312), (0.8590646, 0.9964002)),
        96000: ((-0.1141486, 0.9676817), (0.8699137, 0.9966946)),
    }

    def __init__(self, sample_rate):
        if checks.kind("RiaaBiquad", "sample_rate", sample_rate, int) not in self._of_rate:
            raise errors.value_error(
                "RiaaBiquad", f"sample_rate must be one of {sorted(self._of_rate)}, but got {sample_rate}"
            )
        zeros, poles = self._of_rate[sample_rate]
        b, a = np.poly(zeros), np.poly(poles)
        turn = np.exp(-2j * math.pi * 1000 / sample_rate * np.arange(3))
        self._set(*(b * abs((a @ turn) / (b @ turn))), *a)
