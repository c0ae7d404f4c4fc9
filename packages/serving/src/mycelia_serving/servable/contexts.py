"""Options of models: on which devices they run, and how."""

from __future__ import annotations

import warnings
from typing import Any

from mycelia_serving.servable import arguments

_PRECISIONS = ("origin", "fp16")


class DeviceInfo:
    """Options of a model on one kind of device; an option that is not given is ''."""

    device_type = ""
    choices: dict[str, tuple[str, ...] | None] = {}  # option -> its values, None: any text

    def __init__(self, **options: str) -> None:
        owner = type(self).__name__
        for name, value in options.items():
            if name not in self.choices:
                offered = ", ".join(self.choices)
                raise RuntimeError(f"{owner} has no option '{name}'; its options are {offered}")
            choices = self.choices[name]
            if choices is None:
                arguments.check_str(name, value)
            else:
                arguments.check_choice(name, value, choices)
        for name in self.choices:
            setattr(self, name, options.get(name, ""))

    def options(self) -> dict[str, str]:
        """What was given."""
        return {name: getattr(self, name) for name in self.choices if getattr(self, name)}

    def __repr__(self) -> str:
        text = ", ".join(f"{name}={value!r}" for name, value in self.options().items())
        return f"{type(self).__name__}({text})"


class CPUDeviceInfo(DeviceInfo):
    """precision_mode: "origin" computes as the model says, "fp16" in half precision where that exists."""

    device_type = "cpu"
    choices = {"precision_mode": _PRECISIONS}


class GPUDeviceInfo(DeviceInfo):
    """precision_mode: "origin" computes as the model says, "fp16" in half precision where that exists."""

    device_type = "gpu"
    choices = {"precision_mode": _PRECISIONS}


class AscendDeviceInfo(DeviceInfo):
    """Options that Ascend's compiler takes, under its names."""

    device_type = "ascend"
    choices = {
        "insert_op_cfg_path": None,
        "input_format": ("ND", "NCHW", "NHWC", "CHWN", "NC1HWC0", "NHWC1C0"),
        "input_shape": None,
        "output_type": ("FP32", "FP16", "UINT8"),
        "precision_mode": (
            "force_fp16",
            "allow_fp32_to_fp16",
            "must_keep_origin_dtype",
            "allow_mix_precision",
        ),
        "op_select_impl_mode": ("high_performance", "high_precision"),
        "fusion_switch_config_path": None,
        "buffer_optimize_mode": ("l1_optimize", "l2_optimize", "off_optimize", "l1_and_l2_optimize"),
    }


class Context:
    """How a model runs: threads, and options per kind of device.

    thread_num: threads of one run; thread_affinity_core_list: cores they stay on; enable_parallel: whether
    ops that do not depend on one another run side by side. Loaders of formats take what they know.
    """

    def __init__(self, **options: Any) -> None:
        self.thread_num: int | None = None
        self.thread_affinity_core_list: tuple[int, ...] = ()
        self.enable_parallel: bool | None = None
        self.device_infos: dict[str, DeviceInfo] = {}
        for name, value in options.items():
            if name == "thread_num":
                self.thread_num = arguments.check_int(name, value, 1)
            elif name == "thread_affinity_core_list":
                if isinstance(value, int):
                    raise RuntimeError(f"Parameter '{name}' should be tuple/list of int, but got int")
                self.thread_affinity_core_list = arguments.check_ints(name, value, 0)
            elif name == "enable_parallel":
                self.enable_parallel = arguments.check_bool(name, value)
            else:
                raise RuntimeError(
                    f"Context has no option '{name}'; its options are thread_num, thread_affinity_core_list, "
                    "enable_parallel"
                )

    def append_device_info(self, device_info: DeviceInfo) -> None:
        """Options for one kind of device; one per kind."""
        if not isinstance(device_info, DeviceInfo):
            raise RuntimeError(
                "Parameter 'device_info' should be CPUDeviceInfo, GPUDeviceInfo or AscendDeviceInfo, "
                f"but got {type(device_info).__name__}"
            )
        kind = device_info.device_type
        if kind in self.device_infos:
            raise RuntimeError(f"Options for the device type {kind} were appended already")
        self.device_infos[kind] = device_info

    def __repr__(self) -> str:
        return (
            f"Context(thread_num={self.thread_num}, enable_parallel={self.enable_parallel}, "
            f"thread_affinity_core_list={self.thread_affinity_core_list}, "
            f"devices={list(self.device_infos.values())})"
        )


class _Options:
    """An older spelling: a context with the options of one device."""

    info: type[DeviceInfo]

    def __init__(self, **options: str) -> None:
        name = type(self).__name__
        warnings.warn(
            f"{name} is deprecated, use register.{self.info.__name__}", DeprecationWarning, stacklevel=2
        )
        self.context = Context()
        self.context.append_device_info(self.info(**options))


class AclOptions(_Options):
    """Options for Ascend, as `AscendDeviceInfo` takes them; deprecated."""

    info = AscendDeviceInfo


class GpuOptions(_Options):
    """Options for GPUs, as `GPUDeviceInfo` takes them; deprecated."""

    info = GPUDeviceInfo
