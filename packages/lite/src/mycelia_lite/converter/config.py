"""The configuration file of a conversion, with the sections of MindSpore Lite's, for one model or several."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from mycelia_lite import ini
from mycelia_lite.converter.errors import Code, ConversionError, NotAvailable
from mycelia_lite.converter.options import READERS, invalid, names_of, switch
from mycelia_lite.quant import Quantization, sections

MODEL_KEYS = ("fmk", "modelFile", "weightFile", "outputFile")

#: Section -> its keys, and why it cannot be had; "" for one that is read.
SECTIONS: dict[str, tuple[str, Collection[str]]] = {
    "registry": ("", ("plugin_path", "disable_fusion", "fusion_blacklists")),
    "model_param": ("", (*MODEL_KEYS, *READERS)),
    "common_quant_param": (
        "",
        ("quant_type", "bit_num", "min_quant_weight_size", "min_quant_weight_channel", "skip_quant_node",
         "debug_info_save_path", "enable_encode", "workspace"),
    ),
    "weight_quant_param": (
        "",
        ("per_channel", "bias_correction", "dequant_strategy", "quant_strategy", "max_segments",
         "update_mindir", "group", "compact", "encode", "code_slack", "error_feedback", "scale_search"),
    ),
    "mixed_bit_weight_quant_param": (
        "", ("init_scale", "auto_tune", "use_cv_data", "max_iterations"),
    ),
    "full_quant_param": (
        "",
        ("activation_quant_method", "bias_correction", "per_channel", "target_device", "smooth_alpha",
         "enable_smooth_shift", "target_cosine", "equalize", "integer_results"),
    ),
    "dynamic_quant_param": ("", ("quant_strategy",)),
    "data_preprocess_param": (
        "",
        ("calibrate_path", "calibrate_size", "input_type", "image_to_format", "normalize_mean",
         "normalize_std", "resize_width", "resize_height", "resize_method", "center_crop_width",
         "center_crop_height"),
    ),
    "transform_quant_param": ("the precision of Ascend's files is not there", ("export_precision_mode",)),
    "micro_param": (
        "C code for microcontrollers is not generated",
        ("enable_micro", "target", "codegen_mode", "support_parallel", "debug_mode", "save_path",
         "project_name", "keep_original_weight", "changeable_weights_name", "inputs_shape",
         "dynamic_dim_params"),
    ),
    "cpu_option_cfg_param": ("", ("architecture", "instruction")),
}  # fmt: skip


@dataclass
class Config:
    """`models`: options of each `[model_param]` by name; `without_fusions`: names, None for all fusions;
    `pack_weights`: whether weights are packed in the file; `quantization`: its sections about that.
    """

    models: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    without_fusions: tuple[str, ...] | None = ()
    pack_weights: bool = False
    quantization: dict[str, dict[str, str]] = field(default_factory=dict)


@contextlib.contextmanager
def _quantization(place: str) -> Iterator[None]:
    """Errors of `quant.sections` as those of a conversion."""
    try:
        yield
    except NotImplementedError as error:
        raise NotAvailable(f"{place}{error}") from error
    except ValueError as error:
        raise ConversionError(Code.INPUT_PARAM_INVALID, f"{place}{error}") from error


def quantization_of(config: Config) -> Quantization | None:
    """What the sections about quantization ask for together. Errors: ConversionError."""
    if not config.quantization:
        return None
    if "quant_type" not in config.quantization.get("common_quant_param", {}):
        raise ConversionError(
            Code.INPUT_PARAM_INVALID,
            "configFile: [common_quant_param] quant_type is missing: WEIGHT_QUANT quantizes weights, "
            "FULL_QUANT data, too, DYNAMIC_QUANT data as they run",
        )
    with _quantization("configFile: "):
        return sections.from_sections(config.quantization)


def read(path: str) -> Config:
    """The configuration in a file. Errors: ConversionError that names file, line, section and key."""
    if not os.path.isfile(path):
        raise ConversionError(Code.INPUT_PARAM_INVALID, f"configFile: the file {path} does not exist")
    try:
        found = ini.read(path)
    except (ini.IniError, OSError) as error:
        raise ConversionError(Code.INPUT_PARAM_INVALID, f"configFile: {error}") from error
    config, seen = Config(), set()
    for section in found:
        if section.name in seen and section.name != "model_param":
            raise ConversionError(
                Code.INPUT_PARAM_INVALID, f"configFile: {section.place}: [{section.name}] comes twice"
            )
        seen.add(section.name)
        enter(config, section.name, section.values, f"configFile: {section.place}")
    return config


def enter(config: Config, name: str, values: Mapping[str, str], place: str) -> None:
    """Add what a section says. Errors: ConversionError for an unknown section, key or value."""
    if name not in SECTIONS:
        known = ", ".join(SECTIONS)
        raise ConversionError(
            Code.INPUT_PARAM_INVALID, f"{place}: there is no section [{name}], expected one of {known}"
        )
    missing, keys = SECTIONS[name]
    for key in values:
        if key not in keys:
            raise ConversionError(
                Code.INPUT_PARAM_INVALID,
                f"{place}: [{name}] has no key '{key}', expected one of {', '.join(keys)}",
            )
    if missing:
        if name == "micro_param" and values.get("enable_micro", "false") == "false":
            return
        raise NotAvailable(f"{place}: [{name}]: {missing}")
    if name in sections.SECTIONS:
        with _quantization(f"{place}: "):
            sections.check_section(name, values)
        config.quantization[name] = dict(values)
        return
    if name == "model_param":
        config.models.append((place, dict(values)))
        return
    if name == "cpu_option_cfg_param":
        for key, expected in (("architecture", "ARM64"), ("instruction", "SIMD_DOT")):
            if values.get(key, expected) != expected:
                raise invalid(f"{place}: [{name}] {key}", expected, values[key])
        config.pack_weights = True  # one order serves all processors
        return
    if values.get("plugin_path"):
        raise NotAvailable(f"{place}: plugin_path: parsers and passes cannot be loaded from libraries")
    left_out = names_of(values.get("fusion_blacklists", ""), "fusion_blacklists")
    config.without_fusions = (
        None if switch(values.get("disable_fusion", "off"), "disable_fusion") else left_out
    )
