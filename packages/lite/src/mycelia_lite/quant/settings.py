"""What a quantization is asked for: in Python, or by the sections of MindSpore Lite's configuration."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

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
    of float16, for this runtime alone; groups are stored so anyway. report: a folder for what became of each
    layer, which the converter writes there; "" for none.

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
    report: str = ""

    def __post_init__(self) -> None:
        limits = (
            ("bits", 0, 16),
            ("most_bytes", 0, 2**63),
            ("min_size", 0, _MOST),
            ("min_channels", 0, _MOST),
            ("group", 0, _MOST),
        )
        for name, low, high in limits:
            value = getattr(self, name)
            if type(value) is not int:
                raise TypeError(f"{name} must be an int, but got {type(value).__name__}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be from {low} to {high}, but got {value}")
        if type(self.most_error) is not float or not 0 < self.most_error < 1:
            raise ValueError(f"most_error must be a float between 0 and 1, but got {self.most_error!r}")
        if self.group % _RUN:
            raise ValueError(f"group must be a multiple of {_RUN}, but got {self.group}")
        if self.group and not self.per_channel:
            raise ValueError("group is for scales of channels, but per_channel is False")
        if self.bits > 8 and (self.group or self.compact):
            raise ValueError(f"group and compact are for at most 8 bits, but bits is {self.bits}")
        for name in ("per_channel", "bias_correction", "compact"):
            if type(getattr(self, name)) is not bool:
                raise TypeError(f"{name} must be a bool, but got {type(getattr(self, name)).__name__}")
        if not isinstance(self.report, str):
            raise TypeError(f"report must be a str, but got {type(self.report).__name__}")
        if isinstance(self.skip, str) or not all(isinstance(name, str) for name in self.skip):
            raise TypeError(f"skip must be names of nodes, but got {self.skip!r}")


def from_sections(sections: Mapping[str, Mapping[str, str]]) -> WeightQuantization:
    """What the sections of a configuration ask for.

    Errors: ValueError that names section and key; NotImplementedError for what is not there.
    """
    common = sections.get("common_quant_param", {})
    weights = sections.get("weight_quant_param", {})
    fields: dict[str, object] = {}
    for key, name in (
        ("bit_num", "bits"),
        ("min_quant_weight_size", "min_size"), ("min_quant_weight_channel", "min_channels"),
    ):  # fmt: skip
        if key in common:
            fields[name] = _number(
                common[key], f"[common_quant_param] {key}", 0, 16 if name == "bits" else _MOST
            )
    if "init_scale" in (mixed := sections.get("mixed_bit_weight_quant_param", {})):
        fields["most_error"] = _share(mixed["init_scale"], "[mixed_bit_weight_quant_param] init_scale")
    if "group" in weights:
        fields["group"] = _number(weights["group"], "[weight_quant_param] group", 0, _MOST)
    for key in ("per_channel", "bias_correction", "compact"):
        if key in weights:
            fields[key] = _switch(weights[key], f"[weight_quant_param] {key}")
    fields["skip"] = tuple(filter(None, map(str.strip, common.get("skip_quant_node", "").split(","))))
    fields["report"] = common.get("debug_info_save_path", "")
    encode = _switch(common.get("enable_encode", "true"), "[common_quant_param] enable_encode")
    if not encode and fields.get("bits", 8) not in (8, 16):
        raise ValueError(
            f"[common_quant_param] enable_encode must be true unless bit_num is 8 or 16, but bit_num is "
            f"{fields['bits']}"
        )
    return WeightQuantization(**fields)  # type: ignore[arg-type]


def check_sections(sections: Mapping[str, Mapping[str, str]]) -> None:
    """Look at each value by itself. Errors: as `from_sections`."""
    for name, values in sections.items():
        kind = values.get("quant_type", "WEIGHT_QUANT") if name == "common_quant_param" else "WEIGHT_QUANT"
        if kind in ("FULL_QUANT", "DYNAMIC_QUANT"):
            raise NotImplementedError(f"[{name}] quant_type={kind}: only WEIGHT_QUANT is there")
        if kind != "WEIGHT_QUANT":
            raise ValueError(
                f"[{name}] quant_type must be WEIGHT_QUANT, FULL_QUANT or DYNAMIC_QUANT, but got {kind!r}"
            )
        for key, what in _ABSENT.items():
            if values.get(key, "false") not in ("", "false", "off"):
                raise NotImplementedError(f"[{name}] {key}={values[key]}: {what}")
    from_sections(sections)


_ABSENT = {
    "workspace": "weights are quantized in memory",
    "dequant_strategy": "weights are decoded as they are multiplied, whatever the model",
    "quant_strategy": "there is one strategy",
    "max_segments": "weights are decoded as they are multiplied, nothing is cut into segments",
    "update_mindir": "the result is a .ms file",
    "auto_tune": "widths follow from weights alone",
    "use_cv_data": "widths follow from weights alone",
    "max_iterations": "widths follow from weights alone",
}


def _number(text: str, name: str, low: int, high: int) -> int:
    if not text.isdecimal() or not low <= int(text) <= high:
        raise ValueError(f"{name} must be from {low} to {high}, but got {text!r}")
    return int(text)


def _share(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < 1:
        raise ValueError(f"{name} must be between 0 and 1, but got {text!r}")
    return number


def _switch(text: str, name: str) -> bool:
    if text not in ("on", "true", "off", "false"):
        raise ValueError(f"{name} must be true or false, but got {text!r}")
    return text in ("on", "true")
