"""Sounds at another speed, pitch or sample rate."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset import checks
from mycelia.dataset.audio.base import (
    AudioTransform,
    BorderType,
    ComplexTransform,
    ResampleMethod,
    WindowType,
)
from mycelia.dataset.audio.spectra import _Framed, istft, pad_time, stft


def vocoder(spectrum: np.ndarray, rate: float, advance: np.ndarray) -> np.ndarray:
    """A complex spectrum [..., freq, time] at another speed, its phases carried on by `advance` [freq, 1]."""
    steps = np.arange(0, spectrum.shape[-1], rate)
    part, at = steps % 1, steps.astype(int)
    padded = np.pad(spectrum, [(0, 0)] * (spectrum.ndim - 1) + [(0, 2)])
    here, there = padded[..., at], padded[..., at + 1]
    turn = np.angle(there) - np.angle(here) - advance
    turn = turn - 2 * math.pi * np.round(turn / (2 * math.pi)) + advance
    phase = np.cumsum(np.concatenate([np.angle(spectrum[..., :1]), turn[..., :-1]], axis=-1), axis=-1)
    return (part * np.abs(there) + (1 - part) * np.abs(here)) * np.exp(1j * phase)


class TimeStretch(ComplexTransform):
    """A complex spectrum [..., freq, time, 2] `fixed_rate` times as fast."""

    rank = 3

    def __init__(self, hop_length=None, n_freq=201, fixed_rate=None):
        if hop_length is not None:
            checks.integer("TimeStretch", "hop_length", hop_length)
        checks.integer("TimeStretch", "n_freq", n_freq)
        if fixed_rate is not None:
            checks.number("TimeStretch", "fixed_rate", fixed_rate, 0, above=True)
        self.advance = np.linspace(0, math.pi * (hop_length or n_freq - 1), n_freq)[:, None]
        self.rate = 1 if fixed_rate is None else fixed_rate

    def change(self, sound):
        if self.rate == 1:  # the channels in one axis, as the real one leaves them
            return sound.reshape(-1, *sound.shape[-2:])
        rows = np.arange(sound.shape[-2]) % len(self.advance)
        return vocoder(sound, self.rate, self.advance[rows])


class PhaseVocoder(ComplexTransform):
    """A complex spectrum [..., freq, time, 2] `rate` times as fast; `phase_advance` is [freq, 1]."""

    rank = 3

    def __init__(self, rate, phase_advance):
        self.rate = checks.number("PhaseVocoder", "rate", rate, 0, above=True)
        self.advance = checks.kind("PhaseVocoder", "phase_advance", phase_advance, np.ndarray)

    def change(self, sound):
        if self.advance.shape != (sound.shape[-2], 1):
            raise self.refuse(
                f"phase_advance must be [{sound.shape[-2]}, 1], but has shape {self.advance.shape}"
            )
        if self.rate == 1:
            return sound.reshape(-1, *sound.shape[-2:])
        return vocoder(sound, self.rate, self.advance.astype(np.float64))


class Resample(AudioTransform):
    """The sound at another rate, by a windowed sinc."""

    def __init__(
        self, orig_freq=16000, new_freq=16000, resample_method=ResampleMethod.SINC_INTERPOLATION,
        lowpass_filter_width=6, rolloff=0.99, beta=None,
    ):  # fmt: skip
        self.orig_freq = checks.number("Resample", "orig_freq", orig_freq, 0, above=True)
        self.new_freq = checks.number("Resample", "new_freq", new_freq, 0, above=True)
        self.method = checks.kind("Resample", "resample_method", resample_method, ResampleMethod)
        self.width = checks.integer("Resample", "lowpass_filter_width", lowpass_filter_width)
        checks.between(
            "Resample", "rolloff", checks.kind("Resample", "rolloff", rolloff, float), 0, 1, above=True
        )
        self.rolloff, self.beta = rolloff, 14.769656459379492 if beta is None else beta

    def apply(self, array):
        return array if self.orig_freq == self.new_freq and array.ndim else super().apply(array)

    def change(self, sound):
        divisor = math.gcd(int(self.orig_freq), int(self.new_freq))
        old, new = int(self.orig_freq) // divisor, int(self.new_freq) // divisor
        if old == new:
            return sound
        base = min(old, new) * self.rolloff
        width = math.ceil(self.width * old / base)
        count = math.ceil(new * sound.shape[-1] / old)
        centers = np.arange(count) * old / new  # where the new values lie among the old ones
        first = np.floor(centers).astype(np.int64)
        taps = np.arange(-width, width + 2)
        t = np.clip((first[:, None] + taps - centers[:, None]) / old * base, -self.width, self.width)
        if self.method is ResampleMethod.SINC_INTERPOLATION:
            window = np.cos(t * math.pi / self.width / 2) ** 2
        else:
            window = np.i0(self.beta * np.sqrt(1 - (t / self.width) ** 2)) / np.i0(self.beta)
        kernel = np.sinc(t) * window * base / old
        padded = np.pad(sound, [(0, 0)] * (sound.ndim - 1) + [(width, width + old)])
        found = np.zeros((*sound.shape[:-1], count))
        for i, tap in enumerate(taps):
            found += padded[..., first + tap + width] * kernel[:, i]
        return found


class PitchShift(_Framed):
    """The sound `n_steps` steps higher, as long as before."""

    def __init__(
        self, sample_rate, n_steps, bins_per_octave=12, n_fft=512, win_length=None, hop_length=None,
        window=WindowType.HANN,
    ):  # fmt: skip
        self.sample_rate = checks.integer("PitchShift", "sample_rate", sample_rate, 0)
        checks.integer("PitchShift", "n_steps", n_steps, -(2**31))
        checks.nonzero("PitchShift", "bins_per_octave", bins_per_octave)
        self._frame(n_fft, win_length, hop_length, window=window, overlap=4)
        self.rate = 2 ** (-n_steps / bins_per_octave)

    def change(self, sound):
        window, count = self._window(), sound.shape[-1]
        padded = pad_time(sound, self.n_fft // 2, BorderType.REFLECT)
        spectrum = stft(padded, window, self.hop_length)
        advance = np.linspace(0, math.pi * self.hop_length, spectrum.shape[-2])[:, None]
        slow = vocoder(spectrum, self.rate, advance)
        longer = round(count / self.rate)
        found = istft("PitchShift", slow, window, self.hop_length, True, longer)
        found = Resample(int(self.sample_rate / self.rate), self.sample_rate).change(found)
        missing = max(0, count - found.shape[-1])
        return np.pad(found, [(0, 0)] * (found.ndim - 1) + [(0, missing)])[..., :count]
