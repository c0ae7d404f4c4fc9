"""The sections about quantization of MindSpore Lite's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mycelia_lite.quant.calibration import Folders
from mycelia_lite.quant.settings import (
    DynamicQuantization,
    FullQuantization,
    Quantization,
    WeightQuantization,
)

Sections = Mapping[str, Mapping[str, str]]

_MOST = 65535  # of sizes
_COMMON = "common_quant_param"
_KINDS = ("WEIGHT_QUANT", "FULL_QUANT", "DYNAMIC_QUANT")
#: Sections that this module reads, with the kinds of quantization that they are for.
SECTIONS: dict[str, tuple[str, ...]] = {
    _COMMON: _KINDS,
    "weight_quant_param": ("WEIGHT_QUANT",),
    "mixed_bit_weight_quant_param": ("WEIGHT_QUANT",),
    "full_quant_param": ("FULL_QUANT",),
    "dynamic_quant_param": ("DYNAMIC_QUANT",),
    "data_preprocess_param": ("FULL_QUANT", "WEIGHT_QUANT"),
}


def from_sections(sections: Sections) -> Quantization:
    """What the sections of a configuration ask for.

    Errors: ValueError that names section and key; NotImplementedError for what is not there.
    """
    kind = _kind(sections)
    for name in sections:
        if kind not in SECTIONS[name]:
            raise ValueError(f"[{name}] is for quant_type {SECTIONS[name][0]}, but it is {kind}")
    if kind == "FULL_QUANT":
        return _full(sections)
    if kind == "DYNAMIC_QUANT":
        return _dynamic(sections)
    return _weights(sections)


def check_section(name: str, values: Mapping[str, str]) -> None:
    """Look at a section by itself. Errors: as `from_sections`."""
    if name == _COMMON:
        _kind({name: values})
    for key, what in _ABSENT.get(name, {}).items():
        if values.get(key, "false") not in ("", "false", "off"):
            raise NotImplementedError(f"[{name}] {key}={values[key]}: {what}")
    if name == "data_preprocess_param":
        _folders(values)
    elif name == "full_quant_param":
        _full_fields({name: values})
    elif name == "dynamic_quant_param":
        _strategy(values)
    elif name == "weight_quant_param":
        needless = {"error_feedback", "scale_search"}  # what needs data is told when all sections are known
        for key in needless & set(values):
            _switch(values[key], f"[{name}] {key}")
        _weights({name: {k: v for k, v in values.items() if k not in needless}})
    elif name != _COMMON or values.get("quant_type", "WEIGHT_QUANT") == "WEIGHT_QUANT":
        _weights({name: values})
    else:
        _common(values)


def _kind(sections: Sections) -> str:
    kind = sections.get(_COMMON, {}).get("quant_type", "WEIGHT_QUANT")
    if kind not in _KINDS:
        raise ValueError(f"[{_COMMON}] quant_type must be one of {', '.join(_KINDS)}, but got {kind!r}")
    return kind


_WEIGHT_KEYS = {
    "dequant_strategy": "weights are decoded as they are multiplied, whatever the model",
    "quant_strategy": "there is one strategy",
    "max_segments": "weights are decoded as they are multiplied, nothing is cut into segments",
    "update_mindir": "the result is a .ms file",
}
_ABSENT = {
    _COMMON: {"workspace": "weights are quantized in memory"},
    "weight_quant_param": _WEIGHT_KEYS,
    "mixed_bit_weight_quant_param": dict.fromkeys(
        ("auto_tune", "use_cv_data", "max_iterations"), "widths follow from weights alone"
    ),
    "full_quant_param": {
        "target_device": "integers are for the processor alone",
        "enable_smooth_shift": "ranges are shifted by factors alone",
    },
}


def _common(common: Mapping[str, str]) -> dict[str, Any]:
    """The fields that all kinds have."""
    fields: dict[str, Any] = {}
    for key, name in (("min_quant_weight_size", "min_size"), ("min_quant_weight_channel", "min_channels")):
        if key in common:
            fields[name] = _number(common[key], f"[{_COMMON}] {key}", 0, _MOST)
    fields["skip"] = tuple(filter(None, map(str.strip, common.get("skip_quant_node", "").split(","))))
    fields["report"] = common.get("debug_info_save_path", "")
    return fields


def _bits(common: Mapping[str, str]) -> int:
    return _number(common.get("bit_num", "8"), f"[{_COMMON}] bit_num", 0, 16)


def _encodes(common: Mapping[str, str]) -> None:
    encode = _switch(common.get("enable_encode", "true"), f"[{_COMMON}] enable_encode")
    if not encode and (bits := _bits(common)) not in (8, 16):
        raise ValueError(
            f"[{_COMMON}] enable_encode must be true unless bit_num is 8 or 16, but bit_num is {bits}"
        )


def _weights(sections: Sections) -> WeightQuantization:
    common = sections.get(_COMMON, {})
    weights = sections.get("weight_quant_param", {})
    fields = _common(common)
    if "bit_num" in common:
        fields["bits"] = _bits(common)
    if "init_scale" in (mixed := sections.get("mixed_bit_weight_quant_param", {})):
        fields["most_error"] = _share(mixed["init_scale"], "[mixed_bit_weight_quant_param] init_scale")
    if "group" in weights:
        fields["group"] = _number(weights["group"], "[weight_quant_param] group", 0, _MOST)
    for key in ("per_channel", "bias_correction", "compact", "encode", "error_feedback", "scale_search"):
        if key in weights:
            fields[key] = _switch(weights[key], f"[weight_quant_param] {key}")
    if "code_slack" in weights:
        fields["code_slack"] = _share(weights["code_slack"], "[weight_quant_param] code_slack")
    if "data_preprocess_param" in sections:
        fields["calibration"] = _folders(sections["data_preprocess_param"])
    _encodes(common)
    return WeightQuantization(**fields)


def _full(sections: Sections) -> FullQuantization:
    common = sections.get(_COMMON, {})
    if _bits(common) != 8:
        raise ValueError(f"[{_COMMON}] bit_num must be 8 for FULL_QUANT, but got {_bits(common)}")
    if "data_preprocess_param" not in sections:
        raise ValueError("[data_preprocess_param] is missing: FULL_QUANT needs data, calibrate_path")
    fields = {"min_channels": 16, "integer_results": True} | _common(common) | _full_fields(sections)
    return FullQuantization(calibration=_folders(sections["data_preprocess_param"]), **fields)


def _full_fields(sections: Sections) -> dict[str, Any]:
    values, place = sections.get("full_quant_param", {}), "[full_quant_param]"
    fields: dict[str, Any] = {}
    if "activation_quant_method" in values:
        fields["method"] = _choice(
            values["activation_quant_method"],
            f"{place} activation_quant_method",
            ("MAX_MIN", "KL", "REMOVAL_OUTLIER"),
        )
    for key in ("per_channel", "bias_correction", "equalize", "integer_results"):
        if key in values:
            fields[key] = _switch(values[key], f"{place} {key}")
    for key, name in (("target_cosine", "target_cosine"), ("smooth_alpha", "smooth")):
        if key in values:
            fields[name] = _share(values[key], f"{place} {key}")
    return fields


def _dynamic(sections: Sections) -> DynamicQuantization:
    common = sections.get(_COMMON, {})
    if _bits(common) != 8:
        raise ValueError(f"[{_COMMON}] bit_num must be 8 for DYNAMIC_QUANT, but got {_bits(common)}")
    fields = _common(common)
    fields.pop("min_channels", None)  # it is of convolutions
    return DynamicQuantization(**fields, **_strategy(sections.get("dynamic_quant_param", {})))


def _strategy(values: Mapping[str, str]) -> dict[str, bool]:
    """Whether weights have a scale for each channel, and data one for each row."""
    if "quant_strategy" not in values:
        return {}
    ways = {"ALWC": {"per_channel": True, "rows": False}, "ACWL": {"per_channel": False, "rows": True}}
    return ways[_choice(values["quant_strategy"], "[dynamic_quant_param] quant_strategy", tuple(ways))]


# ---- data


def _folders(values: Mapping[str, str]) -> Folders:
    place = "[data_preprocess_param]"
    kind = _choice(values.get("input_type", "IMAGE"), f"{place} input_type", ("IMAGE", "BIN"))
    paths: dict[str, str] = {}
    for part in filter(None, map(str.strip, values.get("calibrate_path", "").split(","))):
        name, colon, path = part.partition(":")
        if not colon or not name.strip() or not path.strip():
            raise ValueError(f"{place} calibrate_path must be like input:folder, but got {part!r}")
        if name.strip() in paths:
            raise ValueError(f"{place} calibrate_path has the input '{name.strip()}' twice")
        paths[name.strip()] = path.strip()
    if not paths:
        raise ValueError(f"{place} calibrate_path is missing: a folder for each input, like input:folder")
    fields: dict[str, Any] = {"paths": paths, "images": kind == "IMAGE"}
    if "calibrate_size" in values:
        fields["most"] = _number(values["calibrate_size"], f"{place} calibrate_size", 1, _MOST)
    if kind == "BIN":
        return Folders(**fields)
    if "image_to_format" in values:
        fields["colour"] = _choice(
            values["image_to_format"], f"{place} image_to_format", ("RGB", "GRAY", "BGR")
        )
    if "resize_method" in values:
        fields["method"] = _choice(
            values["resize_method"], f"{place} resize_method", ("LINEAR", "NEAREST", "CUBIC")
        )
    for name, keys in (
        ("resize", ("resize_width", "resize_height")),
        ("crop", ("center_crop_width", "center_crop_height")),
    ):
        given = [k for k in keys if k in values]
        if len(given) == 1:
            raise ValueError(f"{place} has {given[0]} alone: {' and '.join(keys)} go together")
        if given:
            fields[name] = tuple(_number(values[k], f"{place} {k}", 1, _MOST) for k in keys)
    for key, name in (("normalize_mean", "mean"), ("normalize_std", "std")):
        if key in values:
            fields[name] = _list(values[key], f"{place} {key}")
    try:
        return Folders(**fields)
    except ValueError as error:
        raise ValueError(f"{place} {error}") from None


def _list(text: str, name: str) -> tuple[float, ...]:
    try:
        return tuple(float(n) for n in text.strip().removeprefix("[").removesuffix("]").split(","))
    except ValueError:
        raise ValueError(f"{name} must be numbers like [0.5,0.5,0.5], but got {text!r}") from None


def _choice(text: str, name: str, among: tuple[str, ...]) -> str:
    if text not in among:
        raise ValueError(f"{name} must be one of {', '.join(among)}, but got {text!r}")
    return text


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
