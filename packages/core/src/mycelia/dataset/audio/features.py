"""Features of spectra: mel scale, cepstra, decibels; complex spectra; pitch."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset import checks
from mycelia.dataset.audio.base import (
    AudioTransform,
    BorderType,
    ComplexTransform,
    MelType,
    NormMode,
    NormType,
    ScaleType,
    WindowType,
)
from mycelia.dataset.audio.spectra import _Framed, create_dct, linear_fbanks, mel_bank, pad_time
from mycelia.dataset.transforms import RandomTransform
from mycelia.engine.base import errors


class Angle(ComplexTransform):
    """The angle of complex numbers [..., 2] -> [...]."""

    def change(self, sound):
        return np.angle(sound)


class ComplexNorm(ComplexTransform):
    """The magnitude of complex numbers to a power: [..., 2] -> [...]."""

    def __init__(self, power=1.0):
        self.power = checks.number(type(self).__name__, "power", power, 0)

    def change(self, sound):
        return np.abs(sound) ** self.power


class Magphase(ComplexNorm):
    """Magnitude to a power, and angle."""

    def change(self, sound):
        return np.abs(sound) ** self.power, np.angle(sound)


class AmplitudeToDB(AudioTransform):
    """Magnitudes or powers in dB over `ref_value`, no more than `top_db` below the highest."""

    rank = 2

    def __init__(self, stype=ScaleType.POWER, ref_value=1.0, amin=1e-10, top_db=80.0):
        kind = checks.kind("AmplitudeToDB", "stype", stype, ScaleType)
        for name, value in (("ref_value", ref_value), ("amin", amin), ("top_db", top_db)):
            checks.number("AmplitudeToDB", name, value, 0, above=True)
        self.factor = 10 if kind is ScaleType.POWER else 20
        self.amin, self.ref_value, self.top_db = amin, ref_value, top_db

    def change(self, sound):
        found = self.factor * np.log10(np.maximum(sound, self.amin))
        found -= self.factor * math.log10(max(self.amin, self.ref_value))
        axes = tuple(range(max(0, sound.ndim - 3), sound.ndim))
        return np.maximum(found, found.max(axes, keepdims=True) - self.top_db)


class ComputeDeltas(AudioTransform):
    """The slope over `win_length` frames around each one: [..., freq, time]."""

    rank = 2

    def __init__(self, win_length=5, pad_mode=BorderType.EDGE):
        self.pad_mode = checks.kind("ComputeDeltas", "pad_mode", pad_mode, BorderType)
        self.count = (checks.integer("ComputeDeltas", "win_length", win_length, 3) - 1) // 2

    def change(self, sound):
        n = self.count
        frames = np.lib.stride_tricks.sliding_window_view(
            pad_time(sound, n, self.pad_mode), 2 * n + 1, axis=-1
        )
        return frames @ np.arange(-n, n + 1) / (n * (n + 1) * (2 * n + 1) / 3)


class SlidingWindowCmn(AudioTransform):
    """[..., time, feature] less the mean (over the deviation, with `norm_vars`) of a window of frames."""

    rank = 2

    def __init__(self, cmn_window=600, min_cmn_window=100, center=False, norm_vars=False):
        self.window = checks.integer("SlidingWindowCmn", "cmn_window", cmn_window, 0)
        self.least = checks.integer("SlidingWindowCmn", "min_cmn_window", min_cmn_window, 0)
        self.center = checks.kind("SlidingWindowCmn", "center", center, bool)
        self.norm_vars = checks.kind("SlidingWindowCmn", "norm_vars", norm_vars, bool)

    def _range(self, i: int, count: int) -> tuple[int, int]:
        first = i - self.window // 2 if self.center else i - self.window
        last = first + self.window if self.center else i + 1
        if first < 0:
            first, last = 0, last - first
        if not self.center and last > i:
            last = max(i + 1, self.least)
        if last > count:
            first, last = max(0, first - (last - count)), count
        return first, last

    def change(self, sound):
        rows = sound.reshape(-1, *sound.shape[-2:])
        out = np.empty_like(rows)
        for i in range(rows.shape[1]):
            first, last = self._range(i, rows.shape[1])
            part = rows[:, first:last]
            out[:, i] = rows[:, i] - part.mean(1)
            if self.norm_vars:
                with np.errstate(divide="ignore", invalid="ignore"):
                    out[:, i] = 0 if last - first == 1 else out[:, i] / part.std(1)
        return out.reshape(sound.shape)


def _check_mel(op, f_min, f_max, sample_rate, norm, mel_type) -> float:
    checks.number(op, "f_min", f_min)
    if f_max is None:
        if f_min >= sample_rate // 2:
            raise errors.value_error(op, f"f_min must be below sample_rate // 2, but got {f_min}")
    elif checks.number(op, "f_max", f_max, 0, above=True) <= f_min:
        raise errors.value_error(op, f"f_max must be above f_min, but got {f_max} and {f_min}")
    checks.kind(op, "norm", norm, NormType)
    checks.kind(op, "mel_type", mel_type, MelType)
    return sample_rate // 2 if f_max is None else f_max


class MelScale(AudioTransform):
    """[..., freq, time] -> [..., n_mels, time]."""

    rank = 2

    def __init__(
        self, n_mels=128, sample_rate=16000, f_min=0.0, f_max=None, n_stft=201, norm=NormType.NONE,
        mel_type=MelType.HTK,
    ):  # fmt: skip
        name = type(self).__name__
        checks.integer(name, "n_mels", n_mels)
        checks.integer(name, "sample_rate", sample_rate)
        f_max = _check_mel(name, f_min, f_max, sample_rate, norm, mel_type)
        self.n_stft = checks.integer(name, "n_stft", n_stft)
        self.bank = mel_bank(n_stft, f_min, f_max, n_mels, sample_rate, norm, mel_type)

    def change(self, sound):
        if sound.shape[-2] != self.n_stft:
            raise self.refuse(f"{sound.shape[-2]} frequencies are not n_stft {self.n_stft}")
        return np.swapaxes(np.swapaxes(sound, -1, -2) @ self.bank, -1, -2)


class InverseMelScale(MelScale, RandomTransform):
    """[..., n_mels, time] -> [..., n_stft, time]: what gives these mels, found by gradient descent."""

    def __init__(
        self, n_stft, n_mels=128, sample_rate=16000, f_min=0.0, f_max=None, max_iter=100000,
        tolerance_loss=1e-5, tolerance_change=1e-8, sgdargs=None, norm=NormType.NONE, mel_type=MelType.HTK,
    ):  # fmt: skip
        RandomTransform.__init__(self)
        super().__init__(n_mels, sample_rate, f_min, f_max, n_stft, norm, mel_type)
        name = "InverseMelScale"
        self.max_iter = checks.integer(name, "max_iter", max_iter)
        self.tolerance_loss = checks.number(name, "tolerance_loss", tolerance_loss, 0, above=True)
        self.tolerance_change = checks.number(name, "tolerance_change", tolerance_change, 0, above=True)
        options = {"sgd_lr": 0.1, "sgd_momentum": 0.9} if sgdargs is None else sgdargs
        self.rate = checks.number(name, "sgd_lr", options["sgd_lr"], 0)
        self.momentum = checks.number(name, "sgd_momentum", options["sgd_momentum"], 0)

    def change(self, sound):
        if sound.shape[-2] != self.bank.shape[1]:
            raise self.refuse(f"{sound.shape[-2]} mels are not n_mels {self.bank.shape[1]}")
        target = np.swapaxes(sound.reshape(-1, *sound.shape[-2:]), -1, -2)
        guess = self.rng.random((*target.shape[:-1], self.n_stft))
        speed, before = np.zeros_like(guess), math.inf
        for _ in range(self.max_iter):
            rest = target - guess @ self.bank
            loss = (rest**2).sum(-1).mean()
            speed = self.momentum * speed - 2 * (rest @ self.bank.T) / rest[..., 0].size
            guess = np.maximum(guess - self.rate * speed, 0)
            if loss < self.tolerance_loss or abs(before - loss) < self.tolerance_change:
                break
            before = loss
        return np.swapaxes(guess, -1, -2).reshape(*sound.shape[:-2], self.n_stft, sound.shape[-1])


class MelSpectrogram(_Framed):
    """[..., time] -> [..., n_mels, frames]: `Spectrogram`, then `MelScale`."""

    def __init__(
        self, sample_rate=16000, n_fft=400, win_length=None, hop_length=None, f_min=0.0, f_max=None, pad=0,
        n_mels=128, window=WindowType.HANN, power=2.0, normalized=False, center=True,
        pad_mode=BorderType.REFLECT, onesided=True, norm=NormType.NONE, mel_scale=MelType.HTK,
    ):  # fmt: skip
        name = type(self).__name__
        checks.integer(name, "sample_rate", sample_rate, 0)
        checks.integer(name, "n_mels", n_mels, 0)
        checks.kind(name, "f_min", f_min, float)
        f_max = _check_mel(name, f_min, f_max, sample_rate, norm, mel_scale)
        self._frame(n_fft, win_length, hop_length, pad, window, normalized, center, pad_mode, onesided)
        self.power = checks.number(name, "power", power, 0, above=True)
        freqs = n_fft // 2 + 1 if onesided else n_fft
        self.bank = mel_bank(freqs, f_min, f_max, n_mels, sample_rate, norm, mel_scale)

    def change(self, sound):
        found = self._power(sound, self.power)
        return np.swapaxes(np.swapaxes(found, -1, -2) @ self.bank, -1, -2)


def _cepstra(bands: np.ndarray, matrix: np.ndarray, log: bool) -> np.ndarray:
    """Bands [..., band, time], as logarithms or decibels, times a matrix of cosines [band, count]."""
    bands = np.log(bands + 1e-6) if log else AmplitudeToDB().change(bands)
    return np.swapaxes(np.swapaxes(bands, -1, -2) @ matrix, -1, -2)


def _check_dct(op: str, dct_type, norm) -> None:
    checks.kind(op, "norm", norm, NormMode)
    if dct_type != 2:
        raise errors.value_error(op, f"dct_type must be 2, but got {dct_type}")


class MFCC(AudioTransform):
    """Cepstra of the mel scale: [..., time] -> [..., n_mfcc, frames]; `melkwargs` of `MelSpectrogram`."""

    scalar_error = staticmethod(errors.runtime_error)
    single = True

    def __init__(
        self, sample_rate=16000, n_mfcc=40, dct_type=2, norm=NormMode.ORTHO, log_mels=False, melkwargs=None
    ):
        checks.integer("MFCC", "sample_rate", sample_rate, 0)
        self.log_mels = checks.kind("MFCC", "log_mels", log_mels, bool)
        self.n_mfcc = checks.integer("MFCC", "n_mfcc", n_mfcc, 0)
        _check_dct("MFCC", dct_type, norm)
        options = {} if melkwargs is None else checks.kind("MFCC", "melkwargs", melkwargs, dict)
        n_mels = options.get("n_mels", 128)
        if melkwargs is not None and n_mels < n_mfcc:
            raise errors.value_error("MFCC", f"n_mels must be at least n_mfcc, but got {n_mels} and {n_mfcc}")
        self.mels = MelSpectrogram(sample_rate, **options)
        self.n_mels, self.norm = n_mels, norm

    def change(self, sound):
        if self.n_mfcc > self.n_mels:
            raise self.refuse(f"n_mfcc {self.n_mfcc} is more than n_mels {self.n_mels}")
        matrix = create_dct(self.n_mfcc, self.n_mels, self.norm)
        return _cepstra(self.mels.change(sound), matrix, self.log_mels)


class LFCC(_Framed):
    """Cepstra of equal bands: [..., time] -> [..., n_lfcc, frames]; `speckwargs` of `Spectrogram`."""

    single = True

    def __init__(
        self, sample_rate=16000, n_filter=128, n_lfcc=40, f_min=0.0, f_max=None, dct_type=2,
        norm=NormMode.ORTHO, log_lf=False, speckwargs=None,
    ):  # fmt: skip
        checks.integer("LFCC", "sample_rate", sample_rate, 0)
        checks.integer("LFCC", "n_filter", n_filter)
        checks.integer("LFCC", "n_lfcc", n_lfcc)
        self.log_lf = checks.kind("LFCC", "log_lf", log_lf, bool)
        checks.number("LFCC", "f_min", f_min, 0)
        if f_max is not None:
            checks.number("LFCC", "f_max", f_max, 0)
        f_max = sample_rate // 2 if f_max is None else f_max
        if f_min > f_max:
            raise errors.value_error("LFCC", f"f_max must be at least f_min, but got {f_max} and {f_min}")
        _check_dct("LFCC", dct_type, norm)
        options = {} if speckwargs is None else dict(checks.kind("LFCC", "speckwargs", speckwargs, dict))
        self.power = checks.number("LFCC", "power", options.pop("power", 2.0), 0)
        self._frame(**{"n_fft": 400, "win_length": None, "hop_length": None, **options})
        if speckwargs is not None and self.n_fft < n_lfcc:
            raise errors.value_error("LFCC", f"n_fft must be at least n_lfcc, but got {self.n_fft}, {n_lfcc}")
        freqs = self.n_fft // 2 + 1 if self.onesided else self.n_fft
        self.bank = linear_fbanks(freqs, f_min, f_max, n_filter, sample_rate)
        self.matrix = create_dct(n_lfcc, n_filter, norm)

    def change(self, sound):
        found = self._power(sound, self.power)
        bands = np.swapaxes(np.swapaxes(found, -1, -2) @ self.bank, -1, -2)
        return _cepstra(bands, self.matrix, self.log_lf)


class DetectPitchFrequency(AudioTransform):
    """The pitch of each frame in Hz: [..., time] -> [..., frames], by correlation and a median."""

    single = True

    def __init__(self, sample_rate, frame_time=0.01, win_length=30, freq_low=85, freq_high=3400):
        name = "DetectPitchFrequency"
        self.sample_rate = checks.nonzero(name, "sample_rate", sample_rate)
        self.frame_time = checks.number(name, "frame_time", frame_time, 0, above=True)
        self.win_length = checks.integer(name, "win_length", win_length)
        self.freq_low = int(checks.number(name, "freq_low", freq_low, 0, above=True))
        self.freq_high = int(checks.number(name, "freq_high", freq_high, 0, above=True))

    def change(self, sound):
        rows = sound.reshape(-1, sound.shape[-1])
        lags = math.ceil(self.sample_rate / self.freq_low)
        size = math.ceil(self.sample_rate * self.frame_time)
        frames = math.ceil(rows.shape[1] / size)
        padded = np.pad(rows, [(0, 0), (0, lags + frames * size - rows.shape[1])])
        here = padded[:, : frames * size].reshape(-1, frames, size)
        near = np.empty((len(rows), frames, lags))
        for lag in range(1, lags + 1):
            other = padded[:, lag : lag + frames * size].reshape(-1, frames, size)
            lengths = np.linalg.norm(here, axis=-1) + 1e-9, np.linalg.norm(other, axis=-1) + 1e-9
            near[..., lag - 1] = (here * other).sum(-1) / lengths[0] ** 2 / lengths[1] ** 2
        least = math.ceil(self.sample_rate / self.freq_high)
        best = near[..., least:].argmax(-1)
        half = near[..., least : lags // 2]
        if half.shape[-1]:  # the double of a period correlates too: take half of it if almost as good
            better = half.max(-1) > 0.99 * near[..., least:].max(-1)
            best = np.where(better, half.argmax(-1), best)
        best = best + least + 1
        pad = (self.win_length - 1) // 2
        if frames + pad < self.win_length:
            raise self.refuse(f"{frames} frames are too few for win_length {self.win_length}")
        padded = np.concatenate([np.repeat(best[:, :1], pad, axis=1), best], axis=1)
        windows = np.lib.stride_tricks.sliding_window_view(padded, self.win_length, axis=1)
        middle = np.sort(windows, axis=-1)[..., pad]
        return (self.sample_rate / (1e-9 + middle)).reshape(*sound.shape[:-1], -1)
