"""Loudness and effects of sounds."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset import checks
from mycelia.dataset.audio.base import (
    AudioTransform,
    DensityFunction,
    FadeShape,
    GainType,
    Interpolation,
    Modulation,
)
from mycelia.dataset.audio.filters import recursive
from mycelia.dataset.transforms import RandomTransform


class Contrast(AudioTransform):
    """Louder by a bend of the values; `enhancement_amount` of [0, 100]."""

    def __init__(self, enhancement_amount=75.0):
        self.amount = checks.number("Contrast", "enhancement_amount", enhancement_amount, 0, 100) / 750

    def change(self, sound):
        turned = sound * (math.pi / 2)
        return np.sin(turned + self.amount * np.sin(4 * turned))


class DBToAmplitude(AudioTransform):
    """``ref * (10 ** (x / 10)) ** power``."""

    def __init__(self, ref, power):
        self.ref = checks.number("DBToAmplitude", "ref", ref)
        self.power = checks.number("DBToAmplitude", "power", power)

    def change(self, sound):
        return self.ref * (10 ** (0.1 * sound)) ** self.power


class DCShift(AudioTransform):
    """All values moved by `shift`; what gets near the end is pressed together by `limiter_gain`."""

    def __init__(self, shift, limiter_gain=None):
        self.shift = checks.number("DCShift", "shift", shift, -2, 2)
        if limiter_gain is not None:
            checks.kind("DCShift", "limiter_gain", limiter_gain, int, float)
        self.limiter_gain = limiter_gain

    def change(self, sound):
        moved = np.clip(sound + self.shift, -1, 1)
        if self.limiter_gain is None or self.shift == 0:
            return moved
        limit, sign = 1 - (abs(self.shift) - self.limiter_gain), math.copysign(1, self.shift)
        up = sound * sign
        pressed = (up - limit) * self.limiter_gain / (1 - limit) + limit + abs(self.shift)
        return np.where(up > limit, np.minimum(pressed, limit) * sign, moved)


class Gain(AudioTransform):
    """Louder by `gain_db`."""

    def __init__(self, gain_db=1.0):
        self.gain_db = checks.number("Gain", "gain_db", gain_db)

    def change(self, sound):
        return sound * 10 ** (self.gain_db / 20)


class Vol(AudioTransform):
    """Louder by a factor, a factor of power or dB; clamped to [-1, 1]."""

    def __init__(self, gain, gain_type=GainType.AMPLITUDE):
        checks.kind("Vol", "gain", gain, int, float)
        kind = checks.kind("Vol", "gain_type", gain_type, GainType)
        low = -checks.FLOAT_MAX if kind is GainType.DB else 0
        checks.number("Vol", "gain", gain, low, above=kind is GainType.POWER)
        self.factor = {
            GainType.AMPLITUDE: lambda: gain, GainType.DB: lambda: 10 ** (gain / 20),
            GainType.POWER: lambda: math.sqrt(gain),
        }[kind]()  # fmt: skip

    def change(self, sound):
        return np.clip(sound * self.factor, -1, 1)


_FADES = {  # of a ramp 0 .. 1
    FadeShape.LINEAR: lambda r: r,
    FadeShape.EXPONENTIAL: lambda r: 2 ** (r - 1) * r,
    FadeShape.LOGARITHMIC: lambda r: np.log10(0.1 + r) + 1,
    FadeShape.QUARTER_SINE: lambda r: np.sin(r * math.pi / 2),
    FadeShape.HALF_SINE: lambda r: np.sin(r * math.pi - math.pi / 2) / 2 + 0.5,
}


class Fade(AudioTransform):
    """In and out: the first and last values times a ramp. RuntimeError if the sound is shorter than it."""

    def __init__(self, fade_in_len=0, fade_out_len=0, fade_shape=FadeShape.LINEAR):
        self.lengths = (
            checks.integer("Fade", "fade_in_len", fade_in_len, 0),
            checks.integer("Fade", "fade_out_len", fade_out_len, 0),
        )
        self.shape = _FADES[checks.kind("Fade", "fade_shape", fade_shape, FadeShape)]

    def change(self, sound):
        first, last = self.lengths
        if max(self.lengths) > sound.shape[-1]:
            raise self.refuse(f"lengths {self.lengths} are longer than the sound of {sound.shape[-1]}")
        sound[..., :first] *= self.shape(np.linspace(0, 1, first))
        out = 1 - np.linspace(0, 1, last) if last else np.zeros(0)
        sound[..., sound.shape[-1] - last :] *= self.shape(out)
        return sound


class MuLawEncoding(AudioTransform):
    """[-1, 1] as one of `quantization_channels` steps, int32."""

    def __init__(self, quantization_channels=256):
        self.mu = checks.integer("MuLawEncoding", "quantization_channels", quantization_channels) - 1

    def apply(self, array):
        self.check(array)
        array = array.astype(np.float64 if array.dtype == np.float64 else np.float32)
        mu = array.dtype.type(self.mu)
        bent = np.sign(array) * np.log1p(mu * np.abs(array)) / np.log1p(mu)
        return ((bent + 1) / 2 * mu + 0.5).astype(np.int32)


class MuLawDecoding(AudioTransform):
    """Steps of `MuLawEncoding` as values of [-1, 1]."""

    def __init__(self, quantization_channels=256):
        self.mu = checks.integer("MuLawDecoding", "quantization_channels", quantization_channels) - 1

    def change(self, sound):
        bent = sound / self.mu * 2 - 1
        return np.sign(bent) * np.expm1(np.abs(bent) * np.log1p(self.mu)) / self.mu


class Overdrive(AudioTransform):
    """Distortion by soft clipping after `gain` dB; `color` sets the even harmonics."""

    def __init__(self, gain=20.0, color=20.0):
        self.gain = checks.number("Overdrive", "gain", gain, 0, 100)
        self.color = checks.number("Overdrive", "color", color, 0, 100)

    def change(self, sound):
        bent = np.clip(sound * 10 ** (self.gain / 20) + self.color / 200, -1, 1)
        bent = bent - bent**3 / 3
        return np.clip(sound * 0.5 + 0.75 * recursive(bent, (1, -0.995), (1, -1)), -1, 1)


def wave_table(modulation, size: int, low: float, high: float, phase: float, whole: bool) -> np.ndarray:
    """One period of a wave between `low` and `high`, from `phase` on, as float32 or rounded to ints."""
    points = (np.arange(size) + int(phase / math.pi / 2 * size + 0.5)) % size
    if modulation is Modulation.SINUSOIDAL:
        table = (np.sin(points * (2 * math.pi / size)) + 1) / 2
    else:
        rise, quarter = points * 2.0 / size, 4 * points // size
        table = np.where(quarter == 0, rise + 0.5, np.where(quarter == 3, rise - 1.5, 1.5 - rise))
    table = table * (high - low) + low
    if whole:
        return (table + np.where(table < 0, -0.5, 0.5)).astype(np.int32)
    return table.astype(np.float32)


class Phaser(AudioTransform):
    """The sound with itself, delayed by a wave of up to `delay_ms`."""

    def __init__(
        self,
        sample_rate,
        gain_in=0.4,
        gain_out=0.74,
        delay_ms=3.0,
        decay=0.4,
        mod_speed=0.5,
        sinusoidal=True,
    ):
        checks.integer("Phaser", "sample_rate", sample_rate, -(2**31))
        self.gain_in = checks.number("Phaser", "gain_in", gain_in, 0, 1)
        self.gain_out = checks.number("Phaser", "gain_out", gain_out, 0, 1e9)
        delay = checks.number("Phaser", "delay_ms", delay_ms, 0, 5)
        self.decay = checks.number("Phaser", "decay", decay, 0, 0.99)
        speed = checks.number("Phaser", "mod_speed", mod_speed, 0.1, 2)
        wave = Modulation.SINUSOIDAL if checks.kind("Phaser", "sinusoidal", sinusoidal, bool) else None
        self.size = int(delay * 0.001 * sample_rate + 0.5)
        self.table = wave_table(
            wave, int(sample_rate / speed + 0.5), 1, self.size, math.pi / 2, whole=True
        ).tolist()

    def change(self, sound):
        rows = (sound * self.gain_in).reshape(-1, sound.shape[-1])
        buffer, out, place = np.zeros((self.size, len(rows))), np.empty(rows.T.shape), 0
        for i, values in enumerate(rows.T):
            at = (place + self.table[i % len(self.table)]) % self.size
            place = (place + 1) % self.size
            out[i] = values + buffer[at]
            buffer[place] = out[i] * self.decay
        return np.clip(out.T.reshape(sound.shape) * self.gain_out, -1, 1)


class Flanger(AudioTransform):
    """The sound [..., channel, time] with itself, delayed by a short wave; channels are out of step."""

    rank = 2

    def __init__(
        self,
        sample_rate,
        delay=0.0,
        depth=2.0,
        regen=0.0,
        width=71.0,
        speed=0.5,
        phase=25.0,
        modulation=Modulation.SINUSOIDAL,
        interpolation=Interpolation.LINEAR,
    ):
        self.rate = checks.nonzero("Flanger", "sample_rate", sample_rate)
        self.delay = checks.number("Flanger", "delay", delay, 0, 30) / 1000
        self.depth = checks.number("Flanger", "depth", depth, 0, 10) / 1000
        self.regen = checks.number("Flanger", "regen", regen, -95, 95) / 100
        self.width = checks.number("Flanger", "width", width, 0, 100) / 100
        self.speed = checks.number("Flanger", "speed", speed, 0.1, 10)
        self.phase = checks.number("Flanger", "phase", phase, 0, 100) / 100
        self.modulation = checks.kind("Flanger", "modulation", modulation, Modulation)
        self.interpolation = checks.kind("Flanger", "interpolation", interpolation, Interpolation)

    def apply(self, array):
        found = super().apply(array)
        return found.astype(array.dtype) if array.dtype.kind in "iu" else found

    def change(self, sound):
        own = 1 / (1 + self.width)
        echo = self.width / (1 + self.width) * (1 - abs(self.regen))
        size, period = int((self.delay + self.depth) * self.rate + 0.5) + 2, int(self.rate / self.speed)
        low = math.floor(self.delay * self.rate + 0.5)
        table = wave_table(self.modulation, period, low, size - 2, 3 * math.pi / 2, whole=False)
        channels = sound.shape[-2]
        steps = (np.arange(channels) * period * self.phase + 0.5).astype(int)
        rows = sound.reshape(-1, channels, sound.shape[-1])
        buffer, out = np.zeros((len(rows), channels, size)), np.empty(rows.shape)
        last, each, place = np.zeros((len(rows), channels)), np.arange(channels), 0
        for i in range(rows.shape[-1]):
            place = (place - 1) % size
            delay = table[(i + steps) % period]
            whole = np.floor(delay).astype(int)
            part = delay - whole
            buffer[:, :, place] = rows[:, :, i] + last * self.regen
            d0, d1, d2 = (buffer[:, each, (place + whole + k) % size] for k in range(3))
            if self.interpolation is Interpolation.LINEAR:
                last = d0 + (d1 - d0) * part
            else:
                d1, d2 = d1 - d0, d2 - d0
                last = d0 + ((d2 * 0.5 - d1) * part + d1 * 2 - d2 * 0.5) * part
            out[:, :, i] = rows[:, :, i] * own + last * echo
        return np.clip(out.reshape(sound.shape), -1, 1)


class Dither(AudioTransform, RandomTransform):
    """Noise of one step of 16 bits before rounding to it; `noise_shaping` moves the error.

    TPDF adds a triangle over the time, RPDF and GPDF random numbers of each channel (where MindSpore adds
    samples of the sound, some of them from outside of it).
    """

    _SCALE = 2.0**15 - 2  # what 1 becomes, so that noise does not lead beyond 16 bits

    def __init__(self, density_function=DensityFunction.TPDF, noise_shaping=False):
        RandomTransform.__init__(self)
        self.density = checks.kind("Dither", "density_function", density_function, DensityFunction)
        self.noise_shaping = checks.kind("Dither", "noise_shaping", noise_shaping, bool)

    def change(self, sound):
        scaled = sound * self._SCALE
        if self.density is DensityFunction.RPDF:
            scaled = scaled + self.rng.random(sound.shape[:-1] + (1,)) - 0.5
        elif self.density is DensityFunction.GPDF:
            scaled = scaled + (self.rng.random((6, *sound.shape[:-1], 1)).sum(0) - 3)
        else:
            scaled = scaled + np.bartlett(sound.shape[-1] + 1)[:-1]
        rounded = np.round(scaled) / 2.0**15
        if self.noise_shaping:
            error = rounded - sound
            rounded[..., 1:] += error[..., :-1]
        return rounded
