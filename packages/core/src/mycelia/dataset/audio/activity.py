"""Voice activity: where speech begins in a recording."""

from __future__ import annotations

import math

import numpy as np

from mycelia.dataset import checks
from mycelia.dataset.audio.base import AudioTransform
from mycelia.engine.base import errors

_LEAST_DFT = 16
_OFFSET = 21  # of the logarithm of the cepstral power, so that silence measures 0


def _hann(size: int) -> np.ndarray:
    return 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)


def _decay(seconds: float, rate: float) -> float:
    """How much of an average is left after one of `rate` steps a second."""
    return math.exp(-1 / (seconds * rate)) if seconds else 0.0


class Vad(AudioTransform):
    """Cut silence off the beginning of speech: [..., time] -> [..., less time], all channels alike.

    The power of a cepstrum, taken `measure_freq` times a second over what is left of the spectrum above an
    estimate of the noise, must reach `trigger_level` on average; from there it is searched back for the
    beginning of shorter bursts. What never triggers keeps as much of its end as is searched. Times are in
    seconds, frequencies in Hz. Errors: TypeError, ValueError; RuntimeError for frequencies that leave no
    band. Source: the effect ``vad`` of SoX, https://sox.sourceforge.net.
    """

    def __init__(
        self,
        sample_rate,
        trigger_level=7.0,
        trigger_time=0.25,
        search_time=1.0,
        allowed_gap=0.25,
        pre_trigger_time=0.0,
        boot_time=0.35,
        noise_up_time=0.1,
        noise_down_time=0.01,
        noise_reduction_amount=1.35,
        measure_freq=20.0,
        measure_duration=None,
        measure_smooth_time=0.4,
        hp_filter_freq=50.0,
        lp_filter_freq=6000.0,
        hp_lifter_freq=150.0,
        lp_lifter_freq=2000.0,
    ):
        self.sample_rate = checks.integer("Vad", "sample_rate", sample_rate)
        self.trigger_level = checks.number("Vad", "trigger_level", trigger_level)
        for name, value in (
            ("trigger_time", trigger_time),
            ("search_time", search_time),
            ("allowed_gap", allowed_gap),
            ("pre_trigger_time", pre_trigger_time),
            ("boot_time", boot_time),
            ("noise_up_time", noise_up_time),
            ("noise_down_time", noise_down_time),
            ("noise_reduction_amount", noise_reduction_amount),
            ("measure_duration", measure_duration or 0),
            ("measure_smooth_time", measure_smooth_time),
        ):
            setattr(self, name, checks.number("Vad", name, value, 0))
        for name, value in (
            ("measure_freq", measure_freq),
            ("hp_filter_freq", hp_filter_freq),
            ("lp_filter_freq", lp_filter_freq),
            ("hp_lifter_freq", hp_lifter_freq),
            ("lp_lifter_freq", lp_lifter_freq),
        ):
            setattr(self, name, checks.number("Vad", name, value, 0, above=True))
        if noise_up_time < noise_down_time:
            raise errors.value_error(
                "Vad",
                f"noise_up_time must not be less than noise_down_time, but got {noise_up_time} and "
                f"{noise_down_time}",
            )
        self.measure_duration = measure_duration or 2.0 / measure_freq

    def change(self, sound):
        if not sound.size:
            raise self.refuse(f"takes sounds, but got shape {sound.shape}")
        return sound[..., self._start(sound.reshape(-1, sound.shape[-1])) :]

    def _start(self, channels: np.ndarray) -> int:
        """The first sample to keep."""
        rate, frequency = self.sample_rate, self.measure_freq
        window = int(rate * self.measure_duration + 0.5)
        period = int(rate / frequency + 0.5)
        # Measures that are remembered; MindSpore counts them in float32.
        kept = math.ceil(float(np.float32(self.search_time)) * float(np.float32(frequency)))
        if kept < 1:
            raise self.refuse(f"search_time {self.search_time} is too short for measure_freq {frequency}")
        gap = int(self.allowed_gap * frequency + 0.5)
        before = int(self.pre_trigger_time * rate + 0.5) + kept * period + window
        meters = [_Meter(self, window) for _ in channels]
        measures = np.zeros((len(channels), kept))
        means = np.zeros(len(channels))
        slow = _decay(self.trigger_time, frequency)
        last_boot = int(self.boot_time * frequency - 0.5)
        boot, index, back = 0, 0, 0
        size = channels.shape[1]
        for end in range(window, size + 1, period):
            triggered = False
            for i, (channel, meter) in enumerate(zip(channels, meters)):
                value = meter.measure(channel[end - window : end], boot)
                measures[i, index] = value
                means[i] = means[i] * slow + value * (1 - slow)
                triggered = triggered or bool(means[i] >= self.trigger_level)
                if triggered:
                    back = min(max(back, self._back(measures[i], index, gap)), kept)
            index = (index + 1) % kept
            boot = -1 if boot < 0 or boot == last_boot else boot + 1
            if triggered:
                return max(0, end - before + (kept - back) * period)
        # MindSpore counts a start before the beginning from the end, unless it lies before that too.
        start = size - before
        return start if start >= 0 else max(0, start + size) % size

    def _back(self, measures: np.ndarray, index: int, gap: int) -> int:
        """How many measures back the bursts begin that lead to the trigger without too large gaps."""
        count = len(measures)
        burst = silent = count
        for j in range(count):
            value = measures[(index - j) % count]
            if value >= self.trigger_level and j <= burst + gap:
                silent = burst = j
            elif value == 0 and burst >= silent:
                silent = j
        return min(count, silent)


class _Meter:
    """Measures of one channel: the spectrum and the noise in it, both averaged over time."""

    def __init__(self, vad: Vad, window: int):
        rate, frequency = vad.sample_rate, vad.measure_freq
        size = _LEAST_DFT
        while size < window:
            size *= 2
        self._size = size
        low = max(int(vad.hp_filter_freq / rate * size + 0.5), 1)
        high = min(int(vad.lp_filter_freq / rate * size + 0.5), size // 2)
        self._band = slice(low, high)
        width = high - low
        if width < 1:
            raise vad.refuse(f"hp_filter_freq {vad.hp_filter_freq} and lp_filter_freq leave no spectrum")
        self._window = _hann(window) * 2 / math.sqrt(window)
        self._lifter = _hann(width) * 2 / math.sqrt(width)
        self._cepstrum = slice(
            math.ceil(rate * 0.5 / vad.lp_lifter_freq),
            min(math.floor(rate * 0.5 / vad.hp_lifter_freq), size // 4),
        )
        if self._cepstrum.stop <= self._cepstrum.start:
            raise vad.refuse(f"hp_lifter_freq {vad.hp_lifter_freq} and lp_lifter_freq leave no cepstrum")
        self._up, self._down = _decay(vad.noise_up_time, frequency), _decay(vad.noise_down_time, frequency)
        self._smooth = _decay(vad.measure_smooth_time, frequency)
        self._reduction = vad.noise_reduction_amount
        self._spectrum, self._noise = np.zeros(width), np.zeros(width)

    def measure(self, samples: np.ndarray, boot: int) -> float:
        """The logarithm of the cepstral power of a window, at least 0; `boot` counts up while noise is
        learned.
        """
        found = np.abs(np.fft.rfft(samples * self._window, self._size)[self._band])
        old = boot / (1 + boot) if boot >= 0 else self._smooth
        self._spectrum = self._spectrum * old + found * (1 - old)
        power = self._spectrum**2
        keep = np.zeros_like(power) if boot >= 0 else np.where(power > self._noise, self._up, self._down)
        self._noise = self._noise * keep + power * (1 - keep)
        left = np.zeros(self._size // 2)
        left[self._band] = np.sqrt(np.maximum(0, power - self._reduction * self._noise)) * self._lifter
        total = float((np.abs(np.fft.rfft(left)[self._cepstrum]) ** 2).sum())
        if not total > 0:
            return 0.0
        return max(0.0, _OFFSET + math.log(total / (self._cepstrum.stop - self._cepstrum.start)))
