# Written by tools/gen_stubs.py.
from mycelia.dataset.audio.activity import Vad as Vad
from mycelia.dataset.audio.base import _Choice as __Choice
from mycelia.dataset.audio.effects import (
    Contrast as Contrast,
    DBToAmplitude as DBToAmplitude,
    DCShift as DCShift,
    Dither as Dither,
    Fade as Fade,
    Flanger as Flanger,
    Gain as Gain,
    MuLawDecoding as MuLawDecoding,
    MuLawEncoding as MuLawEncoding,
    Overdrive as Overdrive,
    Phaser as Phaser,
    Vol as Vol,
)
from mycelia.dataset.audio.features import (
    AmplitudeToDB as AmplitudeToDB,
    Angle as Angle,
    ComplexNorm as ComplexNorm,
    ComputeDeltas as ComputeDeltas,
    DetectPitchFrequency as DetectPitchFrequency,
    InverseMelScale as InverseMelScale,
    LFCC as LFCC,
    MFCC as MFCC,
    Magphase as Magphase,
    MelScale as MelScale,
    MelSpectrogram as MelSpectrogram,
    SlidingWindowCmn as SlidingWindowCmn,
)
from mycelia.dataset.audio.filters import (
    AllpassBiquad as AllpassBiquad,
    BandBiquad as BandBiquad,
    BandpassBiquad as BandpassBiquad,
    BandrejectBiquad as BandrejectBiquad,
    BassBiquad as BassBiquad,
    Biquad as Biquad,
    DeemphBiquad as DeemphBiquad,
    EqualizerBiquad as EqualizerBiquad,
    Filtfilt as Filtfilt,
    HighpassBiquad as HighpassBiquad,
    LFilter as LFilter,
    LowpassBiquad as LowpassBiquad,
    RiaaBiquad as RiaaBiquad,
    TrebleBiquad as TrebleBiquad,
)
from mycelia.dataset.audio.masks import (
    FrequencyMasking as FrequencyMasking,
    MaskAlongAxis as MaskAlongAxis,
    MaskAlongAxisIID as MaskAlongAxisIID,
    TimeMasking as TimeMasking,
)
from mycelia.dataset.audio.rate import (
    PhaseVocoder as PhaseVocoder,
    PitchShift as PitchShift,
    Resample as Resample,
    TimeStretch as TimeStretch,
)
from mycelia.dataset.audio.spectra import (
    GriffinLim as GriffinLim,
    InverseSpectrogram as InverseSpectrogram,
    SpectralCentroid as SpectralCentroid,
    Spectrogram as Spectrogram,
    create_dct as create_dct,
    linear_fbanks as linear_fbanks,
    melscale_fbanks as melscale_fbanks,
)

__all__ = [
    "AllpassBiquad",
    "AmplitudeToDB",
    "Angle",
    "BandBiquad",
    "BandpassBiquad",
    "BandrejectBiquad",
    "BassBiquad",
    "Biquad",
    "BorderType",
    "ComplexNorm",
    "ComputeDeltas",
    "Contrast",
    "DBToAmplitude",
    "DCShift",
    "DeemphBiquad",
    "DensityFunction",
    "DetectPitchFrequency",
    "Dither",
    "EqualizerBiquad",
    "Fade",
    "FadeShape",
    "Filtfilt",
    "Flanger",
    "FrequencyMasking",
    "Gain",
    "GainType",
    "GriffinLim",
    "HighpassBiquad",
    "Interpolation",
    "InverseMelScale",
    "InverseSpectrogram",
    "LFCC",
    "LFilter",
    "LowpassBiquad",
    "MFCC",
    "Magphase",
    "MaskAlongAxis",
    "MaskAlongAxisIID",
    "MelScale",
    "MelSpectrogram",
    "MelType",
    "Modulation",
    "MuLawDecoding",
    "MuLawEncoding",
    "NormMode",
    "NormType",
    "Overdrive",
    "PhaseVocoder",
    "Phaser",
    "PitchShift",
    "Resample",
    "ResampleMethod",
    "RiaaBiquad",
    "ScaleType",
    "SlidingWindowCmn",
    "SpectralCentroid",
    "Spectrogram",
    "TimeMasking",
    "TimeStretch",
    "TrebleBiquad",
    "Vad",
    "Vol",
    "WindowType",
    "create_dct",
    "linear_fbanks",
    "melscale_fbanks",
]

class BorderType(__Choice):
    CONSTANT = ...
    EDGE = ...
    REFLECT = ...
    SYMMETRIC = ...

class DensityFunction(__Choice):
    TPDF = ...
    RPDF = ...
    GPDF = ...

class FadeShape(__Choice):
    QUARTER_SINE = ...
    HALF_SINE = ...
    LINEAR = ...
    LOGARITHMIC = ...
    EXPONENTIAL = ...

class GainType(__Choice):
    AMPLITUDE = ...
    POWER = ...
    DB = ...

class Interpolation(__Choice):
    LINEAR = ...
    QUADRATIC = ...

class MelType(__Choice):
    HTK = ...
    SLANEY = ...

class Modulation(__Choice):
    SINUSOIDAL = ...
    TRIANGULAR = ...

class NormMode(__Choice):
    ORTHO = ...
    NONE = ...

class NormType(__Choice):
    SLANEY = ...
    NONE = ...

class ResampleMethod(__Choice):
    SINC_INTERPOLATION = ...
    KAISER_WINDOW = ...

class ScaleType(__Choice):
    POWER = ...
    MAGNITUDE = ...

class WindowType(__Choice):
    BARTLETT = ...
    BLACKMAN = ...
    HAMMING = ...
    HANN = ...
    KAISER = ...
