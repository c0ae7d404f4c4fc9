"""The device in force, and a check that everything works."""

from __future__ import annotations

from dataclasses import dataclass

from mycelia.engine.base import config


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """The kind of device and its number."""

    device_target: str
    device_id: int

    def __repr__(self) -> str:
        return f"DeviceInfo({self.device_target!r}, {self.device_id})"


def get_current_device() -> DeviceInfo:
    """The device that runs ops."""
    return DeviceInfo(str(config.get("device_target")), int(config.get("device_id")))


class DeviceCtx:
    """``with DeviceCtx("CPU"):`` work within runs on that device.  Errors: those of `set_device`."""

    def __init__(self, name: str, device_id: int | None = None):
        self.settings = {"device_target": name} | ({} if device_id is None else {"device_id": device_id})

    def __enter__(self) -> DeviceCtx:
        self._block = config.context(**self.settings)
        self._block.__enter__()
        return self

    def __exit__(self, *exc) -> None:
        self._block.__exit__(*exc)


def run_check() -> None:
    """Multiply two tensors, compare the result with NumPy's, and print whether it is right."""
    import numpy as np

    import mycelia as ms

    print(f"MindSpore version:  {_version()}")
    try:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        product = (ms.Tensor(x) * ms.Tensor(x)).asnumpy()
        if not np.array_equal(product, x * x):
            raise RuntimeError(f"the product of {x.tolist()} with itself came out as {product.tolist()}")
    except Exception as error:
        print(f"MindSpore running check failed.\n{error}")
        return
    target = config.get("device_target")
    print(
        "The result of multiplication calculation is correct, "
        f"MindSpore has been installed on platform [{target}] successfully!"
    )


def _version() -> str:
    import mycelia

    return mycelia.__version__


def swap_tensors(t1, t2) -> None:
    """Exchange the values of two tensors, whatever their shapes and dtypes."""
    first = t1._detach()
    t1._assign(t2._detach())
    t2._assign(first)
