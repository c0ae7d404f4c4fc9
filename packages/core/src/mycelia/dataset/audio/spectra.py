"""Spectra: transforms between time and frequency, and banks of filters."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset import checks
from mycelia.dataset.audio.base import (
    AudioTransform,
    BorderType,
    MelType,
    NormMode,
    NormType,
    WindowType,
    as_complex,
)
from mycelia.engine.base import errors


def window_of(kind: WindowType, size: int) -> np.ndarray:
    """A periodic window of `size` values."""
    if size == 1:
        return np.ones(1)
    t = np.arange(size) / size
    if kind is WindowType.BARTLETT:
        return 1 - np.abs(2 * t - 1)
    if kind is WindowType.BLACKMAN:
        return 0.42 - 0.5 * np.cos(2 * math.pi * t) + 0.08 * np.cos(4 * math.pi * t)
    if kind is WindowType.HAMMING:
        return 0.54 - 0.46 * np.cos(2 * math.pi * t)
    if kind is WindowType.KAISER:
        return np.i0(12 * np.sqrt(1 - (2 * t - 1) ** 2)) / np.i0(12)
    return 0.5 - 0.5 * np.cos(2 * math.pi * t)


def padded_window(kind: WindowType, size: int, n_fft: int) -> np.ndarray:
    """The window in the middle of `n_fft` values."""
    left = (n_fft - size) // 2
    return np.pad(window_of(kind, size), (left, n_fft - size - left))


def pad_time(sound: np.ndarray, count: int, mode: BorderType, **more) -> np.ndarray:
    """`count` more values at both ends of the time axis."""
    return np.pad(sound, [(0, 0)] * (sound.ndim - 1) + [(count, count)], mode.value, **more)


def stft(sound: np.ndarray, window: np.ndarray, hop: int) -> np.ndarray:
    """[..., time] -> complex [..., n_fft // 2 + 1, frames]."""
    frames = np.lib.stride_tricks.sliding_window_view(sound, len(window), axis=-1)[..., ::hop, :]
    return np.swapaxes(np.fft.rfft(frames * window, axis=-1), -1, -2)


def istft(op: str, spectrum: np.ndarray, window: np.ndarray, hop: int, center: bool, length) -> np.ndarray:
    """Complex [..., n_fft // 2 + 1, frames] -> [..., time]. RuntimeError where the windows leave gaps."""
    n_fft, frames = len(window), spectrum.shape[-1]
    parts = np.fft.irfft(np.swapaxes(spectrum, -1, -2), n_fft, axis=-1) * window
    total = n_fft + hop * (frames - 1)
    out, weight = np.zeros((*parts.shape[:-2], total)), np.zeros(total)
    for i in range(frames):
        out[..., i * hop : i * hop + n_fft] += parts[..., i, :]
        weight[i * hop : i * hop + n_fft] += window**2
    first = n_fft // 2 if center else 0
    last = total - first if length is None else min(first + length, total)
    if weight[first:last].size and weight[first:last].min() < 1e-11:
        raise errors.runtime_error(op, "the windows leave gaps: hop_length is too large, or center is False")
    found = out[..., first:last] / weight[first:last]
    missing = 0 if length is None else length - found.shape[-1]
    return np.pad(found, [(0, 0)] * (found.ndim - 1) + [(0, missing)]) if missing > 0 else found


class _Framed(AudioTransform):
    """Base of what works on frames; the arguments that they share are checked and kept here."""

    scalar_error = staticmethod(errors.runtime_error)

    def _frame(
        self, n_fft, win_length, hop_length, pad=0, window=WindowType.HANN, normalized=False, center=True,
        pad_mode=BorderType.REFLECT, onesided=True, least=1, overlap=2,
    ):  # fmt: skip
        name = type(self).__name__
        self.n_fft = checks.integer(name, "n_fft", n_fft)
        if win_length is not None:
            checks.integer(name, "win_length", win_length, least)
            if win_length > n_fft:
                raise errors.value_error(
                    name, f"win_length must be at most n_fft, but got {win_length} and {n_fft}"
                )
        if hop_length is not None:
            checks.integer(name, "hop_length", hop_length, least)
        self.win_length = win_length or n_fft
        self.hop_length = hop_length or self.win_length // overlap
        self.pad = checks.integer(name, "pad", pad, 0)
        self.window = checks.kind(name, "window", window, WindowType)
        self.normalized = checks.kind(name, "normalized", normalized, bool)
        self.center = checks.kind(name, "center", center, bool)
        self.pad_mode = checks.kind(name, "pad_mode", pad_mode, BorderType)
        self.onesided = checks.kind(name, "onesided", onesided, bool)

    def _window(self) -> np.ndarray:
        return padded_window(self.window, self.win_length, self.n_fft)

    def _spectrum(self, sound) -> np.ndarray:
        sound = pad_time(sound, self.pad, BorderType.CONSTANT)
        if self.center:
            sound = pad_time(sound, self.n_fft // 2, self.pad_mode)
        if self.n_fft > sound.shape[-1]:
            raise self.refuse(f"n_fft {self.n_fft} is more than the {sound.shape[-1]} values of the sound")
        window = self._window()
        found = stft(sound, window, self.hop_length)
        if self.normalized:
            found = found / math.sqrt((window**2).sum())
        if not self.onesided:  # the other side mirrors this one
            found = np.concatenate([found, found[..., (self.n_fft - 1) // 2 : 0 : -1, :]], axis=-2)
        return found

    def _power(self, sound, power: float) -> np.ndarray:
        found = self._spectrum(sound)
        return np.stack([found.real, found.imag], -1) if power == 0 else np.abs(found) ** power


class Spectrogram(_Framed):
    """[..., time] -> magnitudes to the power [..., freq, frames]; power 0: complex [..., freq, frames, 2]."""

    def __init__(
        self, n_fft=400, win_length=None, hop_length=None, pad=0, window=WindowType.HANN, power=2.0,
        normalized=False, center=True, pad_mode=BorderType.REFLECT, onesided=True,
    ):  # fmt: skip
        self._frame(n_fft, win_length, hop_length, pad, window, normalized, center, pad_mode, onesided)
        self.power = checks.number("Spectrogram", "power", power, 0)

    def change(self, sound):
        return self._power(sound, self.power)


class SpectralCentroid(_Framed):
    """The mean frequency of each frame, weighted by magnitude: [..., time] -> [..., 1, frames]."""

    def __init__(
        self, sample_rate, n_fft=400, win_length=None, hop_length=None, pad=0, window=WindowType.HANN
    ):
        self.sample_rate = checks.integer("SpectralCentroid", "sample_rate", sample_rate, 0)
        self._frame(n_fft, win_length, hop_length, pad, window)

    def change(self, sound):
        found = self._power(sound, 1)
        freqs = np.linspace(0, self.sample_rate // 2, self.n_fft // 2 + 1)[:, None]
        with np.errstate(invalid="ignore"):
            return (freqs * found).sum(-2, keepdims=True) / found.sum(-2, keepdims=True)


class InverseSpectrogram(_Framed):
    """The sound of a complex spectrogram [..., freq, frames, 2]."""

    rank = 3

    def __init__(
        self, length=None, n_fft=400, win_length=None, hop_length=None, pad=0, window=WindowType.HANN,
        normalized=False, center=True, pad_mode=BorderType.REFLECT, onesided=True,
    ):  # fmt: skip
        if length is not None:
            checks.integer("InverseSpectrogram", "length", length, 0)
        self.length = length
        self._frame(n_fft, win_length, hop_length, pad, window, normalized, center, pad_mode, onesided)

    def change(self, sound):
        if sound.shape[-1] != 2:
            raise self.refuse(f"takes complex numbers [..., freq, time, 2], but got shape {sound.shape}")
        spectrum, window = as_complex(sound), self._window()
        freqs = self.n_fft // 2 + 1
        if spectrum.shape[-2] != (freqs if self.onesided else self.n_fft):
            raise self.refuse(f"{spectrum.shape[-2]} frequencies do not fit n_fft {self.n_fft}")
        if self.normalized:
            spectrum = spectrum * math.sqrt((window**2).sum())
        length = None if self.length is None else self.length + 2 * self.pad
        found = istft(
            "InverseSpectrogram", spectrum[..., :freqs, :], window, self.hop_length, self.center, length
        )
        return found[..., self.pad : found.shape[-1] - self.pad] if length is not None else found


class GriffinLim(_Framed):
    """A sound with the given magnitudes [..., freq, frames], its phases found in `n_iter` steps."""

    rank = 2

    def __init__(
        self, n_fft=400, n_iter=32, win_length=None, hop_length=None, window_type=WindowType.HANN, power=2.0,
        momentum=0.99, length=None, rand_init=True,
    ):  # fmt: skip
        self._frame(n_fft, win_length, hop_length, window=window_type, least=0)
        self.n_iter = checks.integer("GriffinLim", "n_iter", n_iter)
        self.power = checks.number("GriffinLim", "power", power, 0, above=True)
        self.momentum = checks.number("GriffinLim", "momentum", momentum, 0)
        if length is not None:
            checks.integer("GriffinLim", "length", length, 0)
        self.length = length
        self.rand_init = checks.kind("GriffinLim", "rand_init", rand_init, bool)

    def change(self, sound):
        size, window = sound ** (1 / self.power), self._window()
        if size.shape[-2] != self.n_fft // 2 + 1:
            raise self.refuse(f"{size.shape[-2]} frequencies do not fit n_fft {self.n_fft}")
        rng, before = np.random.default_rng(), 0
        phase = np.exp(2j * math.pi * rng.random(size.shape)) if self.rand_init else np.ones(size.shape)
        keep = self.momentum / (1 + self.momentum)
        for _ in range(self.n_iter):
            guess = istft("GriffinLim", size * phase, window, self.hop_length, True, self.length)
            again = stft(pad_time(guess, self.n_fft // 2, BorderType.REFLECT), window, self.hop_length)
            phase = again - before * keep
            phase, before = phase / (np.abs(phase) + 1e-16), again
        return istft("GriffinLim", size * phase, window, self.hop_length, True, self.length)


# ---- banks of filters and cosines --------------------------------------------------------------------------


def create_dct(n_mfcc, n_mels, norm=NormMode.NONE):
    """The matrix of the discrete cosine transform, float32 [n_mels, n_mfcc]."""
    checks.kind("create_dct", "n_mfcc", n_mfcc, int)
    checks.kind("create_dct", "n_mels", n_mels, int)
    checks.kind("create_dct", "norm", norm, NormMode)
    for name, value in (("n_mfcc", n_mfcc), ("n_mels", n_mels)):
        if value <= 0:
            raise errors.value_error("create_dct", f"{name} must be positive, but got {value}")
    found = np.cos(math.pi / n_mels * (np.arange(n_mels)[:, None] + 0.5) * np.arange(n_mfcc))
    if norm is NormMode.ORTHO:
        found[:, 0] /= math.sqrt(2)
        return (found * math.sqrt(2 / n_mels)).astype(np.float32)
    return (found * 2).astype(np.float32)


def _check_bank(op: str, n_freqs, f_min, f_max, count, sample_rate, what: str) -> None:
    checks.integer(op, "n_freqs", n_freqs, 0)
    checks.number(op, "f_min", f_min, 0)
    checks.number(op, "f_max", f_max, 0, above=True)
    if f_min > f_max:
        raise errors.value_error(op, f"f_min must be at most f_max, but got {f_min} and {f_max}")
    checks.integer(op, what, count)
    checks.integer(op, "sample_rate", sample_rate)


def _triangles(n_freqs: int, sample_rate: int, points: np.ndarray) -> np.ndarray:
    """Triangles between three points each, at the frequencies of a spectrum: [n_freqs, len(points) - 2]."""
    freqs = np.linspace(0, sample_rate // 2, n_freqs)
    gaps, slopes = np.diff(points), points[None, :] - freqs[:, None]
    return np.maximum(0, np.minimum(-slopes[:, :-2] / gaps[:-1], slopes[:, 2:] / gaps[1:]))


def linear_fbanks(n_freqs, f_min, f_max, n_filter, sample_rate):
    """Triangular filters at equal distances, float32 [n_freqs, n_filter]."""
    _check_bank("linear_fbanks", n_freqs, f_min, f_max, n_filter, sample_rate, "n_filter")
    return _triangles(n_freqs, sample_rate, np.linspace(f_min, f_max, n_filter + 2)).astype(np.float32)


_SLANEY_STEP, _SLANEY_LOG = 200 / 3, math.log(6.4) / 27  # linear below 1 kHz, logarithmic above


def _to_mel(freq: float, kind: MelType) -> float:
    if kind is MelType.HTK:
        return 2595 * math.log10(1 + freq / 700)
    if freq < 1000:
        return freq / _SLANEY_STEP
    return 1000 / _SLANEY_STEP + math.log(freq / 1000) / _SLANEY_LOG


def _from_mel(mels: np.ndarray, kind: MelType) -> np.ndarray:
    if kind is MelType.HTK:
        return 700 * (10 ** (mels / 2595) - 1)
    knee = 1000 / _SLANEY_STEP
    return np.where(mels < knee, mels * _SLANEY_STEP, 1000 * np.exp(_SLANEY_LOG * (mels - knee)))


def mel_bank(n_freqs, f_min, f_max, n_mels, sample_rate, norm, mel_type) -> np.ndarray:
    """Triangular filters at equal distances in mel, [n_freqs, n_mels]."""
    mels = np.linspace(_to_mel(f_min, mel_type), _to_mel(f_max, mel_type), n_mels + 2)
    points = _from_mel(mels, mel_type)
    bank = _triangles(n_freqs, sample_rate, points)
    return bank * 2 / (points[2:] - points[:-2]) if norm is NormType.SLANEY else bank


def melscale_fbanks(n_freqs, f_min, f_max, n_mels, sample_rate, norm=NormType.NONE, mel_type=MelType.HTK):
    """Triangular filters at equal distances in mel, float32 [n_freqs, n_mels]."""
    _check_bank("melscale_fbanks", n_freqs, f_min, f_max, n_mels, sample_rate, "n_mels")
    checks.kind("melscale_fbanks", "norm", norm, NormType)
    checks.kind("melscale_fbanks", "mel_type", mel_type, MelType)
    return mel_bank(n_freqs, f_min, f_max, n_mels, sample_rate, norm, mel_type).astype(np.float32)
