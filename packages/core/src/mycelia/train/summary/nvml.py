"""NVIDIA's GPUs, asked through the driver's own library (NVML); none where there is no driver."""

from __future__ import annotations

import ctypes

from mycelia.engine.base import log

# Source: NVML API reference, docs.nvidia.com/deploy/nvml-api: structures and the meaning of results.
_MIB = 1 << 20
_CORE_SENSOR = 0  # NVML_TEMPERATURE_GPU


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]  # percent


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Gpus:
    """The GPUs that the driver shows. `library`: file of NVML."""

    def __init__(self, library: str = "libnvidia-ml.so.1"):
        self._devices: list[ctypes.c_void_p] = []
        try:
            self._nvml = ctypes.CDLL(library)
        except OSError:
            return
        count = ctypes.c_uint()
        if self._nvml.nvmlInit_v2() or self._nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            log.logger(__name__).warning("NVIDIA's driver does not answer, so no GPU is watched")
            return
        for index in range(count.value):
            device = ctypes.c_void_p()
            if not self._nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)):
                self._devices.append(device)

    def read(self) -> dict[str, float]:
        """Use in percent, memory in MiB and percent, power in watts, temperature in degrees Celsius.

        What a GPU does not tell is left out.
        """
        found: dict[str, float] = {}
        for number, device in enumerate(self._devices):
            name = f"gpu{number}"
            use, memory, value = _Utilization(), _Memory(), ctypes.c_uint()
            if not self._nvml.nvmlDeviceGetUtilizationRates(device, ctypes.byref(use)):
                found[f"{name}_percent"] = float(use.gpu)
            if not self._nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) and memory.total:
                found[f"{name}_memory_MiB"] = memory.used / _MIB
                found[f"{name}_memory_percent"] = 100 * memory.used / memory.total
            if not self._nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(value)):
                found[f"{name}_power_W"] = value.value / 1000
            sensor = ctypes.c_int(_CORE_SENSOR)
            if not self._nvml.nvmlDeviceGetTemperature(device, sensor, ctypes.byref(value)):
                found[f"{name}_temperature_C"] = float(value.value)
        return found
