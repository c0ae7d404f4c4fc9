"""Features of spectra: mel scale, cepstra, decibels, masks; complex spectra; other speed and rate."""

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
    ResampleMethod,
    ScaleType,
    WindowType,
)
from mycelia.dataset.audio.spectra import _Framed, create_dct, istft, linear_fbanks, mel_bank, pad_time, stft
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


# ---- masks -------------------------------------------------------------------------------------------------


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


# ---- other speed and rate ----------------------------------------------------------------------------------


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
