"""What a quantization is asked for in Python."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from mycelia_lite.quant import calibration
from mycelia_lite.quant.ranges import METHODS

_MOST = 65535  # of sizes in a configuration
_RUN = 32  # weights, of whole ones of which groups consist


@dataclass(frozen=True, kw_only=True)
class WeightQuantization:
    """Weights of fewer bits; data stays float32.

    bits: of a weight, 1 to 16; 0: of 1 to 8 those that each layer needs, by most_bytes (of all integers
    together) or, if that is 0, by most_error (the root of the mean square, relative to the weights').
    per_channel: a scale for each channel of the results, else for the tensor. min_size, min_channels: weights
    of so many elements, and those of more than two dimensions for so many channels, stay as they are. skip:
    names of nodes whose weights do. bias_correction: no error in the mean of a channel. group: weights of a
    channel of a matrix with a scale of their own, a multiple of 32; 0: all. compact: bits up to 8 with scales
    of float16, for this runtime alone; groups are stored so anyway. encode: compact, and integers in an
    entropy code, which the runtime decodes when it loads the model; code_slack: the share by which errors
    may grow for that to be shorter. report: a folder for what became of each
    layer, which the converter writes there; "" for none. calibration: data as of `FullQuantization`, for
    these two: error_feedback: what rounding a weight changes in results is made up for by the weights
    behind it (GPTQ); scale_search: channels get the factors with which results change least (AWQ).

    Errors: TypeError, ValueError that name the field.
    """

    bits: int = 8
    most_error: float = 0.02
    most_bytes: int = 0
    per_channel: bool = True
    min_size: int = 0
    min_channels: int = 16
    skip: Collection[str] = ()
    bias_correction: bool = True
    group: int = 0
    compact: bool = False
    encode: bool = False
    code_slack: float = 0.1
    report: str = ""
    calibration: Any = None
    error_feedback: bool = False
    scale_search: bool = False

    def __post_init__(self) -> None:
        _whole(self, bits=16, most_bytes=2**63, min_size=_MOST, min_channels=_MOST, group=_MOST)
        if type(self.most_error) is not float or not 0 < self.most_error < 1:
            raise ValueError(f"most_error must be a float between 0 and 1, but got {self.most_error!r}")
        if type(self.code_slack) is not float or not 0 <= self.code_slack <= 1:
            raise ValueError(f"code_slack must be a float from 0 to 1, but got {self.code_slack!r}")
        if self.group % _RUN:
            raise ValueError(f"group must be a multiple of {_RUN}, but got {self.group}")
        if self.group and not self.per_channel:
            raise ValueError("group is for scales of channels, but per_channel is False")
        if self.bits > 8 and (self.group or self.compact or self.encode):
            raise ValueError(f"group, compact and encode are for at most 8 bits, but bits is {self.bits}")
        _switches(
            self, "per_channel", "bias_correction", "compact", "encode", "error_feedback", "scale_search"
        )
        if self.error_feedback or self.scale_search:
            name = "error_feedback" if self.error_feedback else "scale_search"
            if self.calibration is None:
                raise ValueError(f"{name} needs calibration, but there is none")
            if not self.per_channel or self.bits > 8:
                raise ValueError(f"{name} is for scales of channels and at most 8 bits")
        if self.calibration is not None:
            calibration.check(self.calibration)
        _texts(self)


@dataclass(frozen=True, kw_only=True)
class FullQuantization:
    """Weights and data of 8 bits, which integer kernels compute with; inputs and outputs stay what they are.

    calibration: data that show which numbers there are: a list with an array for each run, or a dictionary of
    arrays by the names of inputs, or `Folders`. method: how ranges follow from them, MAX_MIN (extremes), KL
    (the threshold of least divergence) or REMOVAL_OUTLIER (quantiles of 0.0001 and 0.9999). per_channel: a
    scale for each channel of weights, else one. bias_correction: the mean error of each channel is taken out
    of the bias. target_cosine: between outputs before and after; layers are left out until it holds; 0 for
    none. equalize: neighbouring layers get weights of equal ranges, which changes no result of float32.
    smooth: the share, 0 to 1, of the ranges of data that weights of products take over (SmoothQuant); 0 for
    none. integer_results: layers give integers where numbers are read, too, for MindSpore Lite's runtime.
    min_size, min_channels, skip, report: as of `WeightQuantization`.

    Errors: TypeError, ValueError that name the field.
    """

    calibration: Any
    method: str = "MAX_MIN"
    per_channel: bool = True
    bias_correction: bool = True
    target_cosine: float = 0.0
    equalize: bool = False
    smooth: float = 0.0
    integer_results: bool = False
    min_size: int = 0
    min_channels: int = 0
    skip: Collection[str] = ()
    report: str = ""

    def __post_init__(self) -> None:
        calibration.check(self.calibration)
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, but got {self.method!r}")
        if type(self.target_cosine) is not float or not 0 <= self.target_cosine < 1:
            raise ValueError(f"target_cosine must be a float from 0 to 1, but got {self.target_cosine!r}")
        _whole(self, min_size=_MOST, min_channels=_MOST)
        if type(self.smooth) is not float or not 0 <= self.smooth < 1:
            raise ValueError(f"smooth must be a float from 0 to 1, but got {self.smooth!r}")
        _switches(self, "per_channel", "bias_correction", "equalize", "integer_results")
        _texts(self)


@dataclass(frozen=True, kw_only=True)
class DynamicQuantization:
    """Weights of products of 8 bits, and data that become integers as they run; needs no data.

    per_channel: a scale for each channel of weights, else one. rows: a scale for each row of data, as a word
    of a text, else one for the tensor. min_size, skip, report: as of `WeightQuantization`.

    Errors: TypeError, ValueError that name the field.
    """

    per_channel: bool = True
    rows: bool = True
    min_size: int = 0
    skip: Collection[str] = ()
    report: str = ""

    def __post_init__(self) -> None:
        _whole(self, min_size=_MOST)
        _switches(self, "per_channel", "rows")
        _texts(self)


Quantization = WeightQuantization | FullQuantization | DynamicQuantization


def _whole(settings: Any, **limits: int) -> None:
    for name, most in limits.items():
        value = getattr(settings, name)
        if type(value) is not int:
            raise TypeError(f"{name} must be an int, but got {type(value).__name__}")
        if not 0 <= value <= most:
            raise ValueError(f"{name} must be from 0 to {most}, but got {value}")


def _switches(settings: Any, *names: str) -> None:
    for name in names:
        if type(getattr(settings, name)) is not bool:
            raise TypeError(f"{name} must be a bool, but got {type(getattr(settings, name)).__name__}")


def _texts(settings: Any) -> None:
    if not isinstance(settings.report, str):
        raise TypeError(f"report must be a str, but got {type(settings.report).__name__}")
    if isinstance(settings.skip, str) or not all(isinstance(name, str) for name in settings.skip):
        raise TypeError(f"skip must be names of nodes, but got {settings.skip!r}")
