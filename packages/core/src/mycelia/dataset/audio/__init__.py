"""Transforms of sounds: filters, effects, spectra and features of them."""

from mycelia.dataset.audio.activity import Vad
from mycelia.dataset.audio.base import (
    BorderType,
    DensityFunction,
    FadeShape,
    GainType,
    Interpolation,
    MelType,
    Modulation,
    NormMode,
    NormType,
    ResampleMethod,
    ScaleType,
    WindowType,
)
from mycelia.dataset.audio.effects import (
    Contrast,
    DBToAmplitude,
    DCShift,
    Dither,
    Fade,
    Flanger,
    Gain,
    MuLawDecoding,
    MuLawEncoding,
    Overdrive,
    Phaser,
    Vol,
)
from mycelia.dataset.audio.features import (
    LFCC,
    MFCC,
    AmplitudeToDB,
    Angle,
    ComplexNorm,
    ComputeDeltas,
    DetectPitchFrequency,
    InverseMelScale,
    Magphase,
    MelScale,
    MelSpectrogram,
    SlidingWindowCmn,
)
from mycelia.dataset.audio.filters import (
    AllpassBiquad,
    BandBiquad,
    BandpassBiquad,
    BandrejectBiquad,
    BassBiquad,
    Biquad,
    DeemphBiquad,
    EqualizerBiquad,
    Filtfilt,
    HighpassBiquad,
    LFilter,
    LowpassBiquad,
    RiaaBiquad,
    TrebleBiquad,
)
from mycelia.dataset.audio.masks import FrequencyMasking, MaskAlongAxis, MaskAlongAxisIID, TimeMasking
from mycelia.dataset.audio.rate import PhaseVocoder, PitchShift, Resample, TimeStretch
from mycelia.dataset.audio.spectra import (
    GriffinLim,
    InverseSpectrogram,
    SpectralCentroid,
    Spectrogram,
    create_dct,
    linear_fbanks,
    melscale_fbanks,
)

__all__ = [
    "AllpassBiquad", "AmplitudeToDB", "Angle", "BandBiquad", "BandpassBiquad", "BandrejectBiquad",
    "BassBiquad", "Biquad", "BorderType", "ComplexNorm", "ComputeDeltas", "Contrast", "DBToAmplitude",
    "DCShift", "DeemphBiquad", "DensityFunction", "DetectPitchFrequency", "Dither", "EqualizerBiquad", "Fade",
    "FadeShape", "Filtfilt", "Flanger", "FrequencyMasking", "Gain", "GainType", "GriffinLim",
    "HighpassBiquad", "Interpolation", "InverseMelScale", "InverseSpectrogram", "LFCC", "LFilter",
    "LowpassBiquad", "MFCC", "Magphase", "MaskAlongAxis", "MaskAlongAxisIID", "MelScale", "MelSpectrogram",
    "MelType", "Modulation", "MuLawDecoding", "MuLawEncoding", "NormMode", "NormType", "Overdrive",
    "PhaseVocoder", "Phaser", "PitchShift", "Resample", "ResampleMethod", "RiaaBiquad", "ScaleType",
    "SlidingWindowCmn", "SpectralCentroid", "Spectrogram", "TimeMasking", "TimeStretch", "TrebleBiquad",
    "Vad", "Vol", "WindowType", "create_dct", "linear_fbanks", "melscale_fbanks",
]  # fmt: skip
