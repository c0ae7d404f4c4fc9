"""The runtime's C library (`mycelia/lite/c_api.h`); one build of it serves every Python from 3.9 on."""

from __future__ import annotations

import ctypes
import functools
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

Handle = ctypes.c_void_p


class TensorArray(ctypes.Structure):
    """MSTensorHandleArray"""

    _fields_ = (("count", ctypes.c_size_t), ("handles", ctypes.POINTER(Handle)))

    @classmethod
    def of(cls, handles: list[int]) -> TensorArray:
        """An array of these handles; it keeps its own memory."""
        return cls(len(handles), (Handle * len(handles))(*handles))

    def list(self) -> list[int]:
        """The handles."""
        return [self.handles[i] for i in range(self.count)]


class QuantParam(ctypes.Structure):
    """MSQuantParam"""

    _fields_ = (("scale", ctypes.c_double), ("zero_point", ctypes.c_int32), ("bit_num", ctypes.c_int32))


class ShapeInfo(ctypes.Structure):
    """MSShapeInfo"""

    _fields_ = (("count", ctypes.c_size_t), ("sizes", ctypes.c_int64 * 32))


class CallBackParam(ctypes.Structure):
    """MSCallBackParamC"""

    _fields_ = (("node_name", ctypes.c_char_p), ("node_type", ctypes.c_char_p))


class NodeProfile(ctypes.Structure):
    """MSNodeProfile"""

    _fields_ = (
        ("node_name", ctypes.c_char_p),
        ("node_type", ctypes.c_char_p),
        ("milliseconds", ctypes.c_double),
        ("calls", ctypes.c_size_t),
    )


class DelegateTensor(ctypes.Structure):
    """MSDelegateTensor"""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("data_type", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("data_size", ctypes.c_size_t),
    )


_Tensors = ctypes.POINTER(DelegateTensor)
KernelRun = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, _Tensors, ctypes.c_size_t, _Tensors, ctypes.c_size_t
)
Destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DelegateKernel(ctypes.Structure):
    """MSDelegateKernel"""

    _fields_ = (("user", ctypes.c_void_p), ("run", KernelRun), ("destroy", Destroy))


CustomInfer = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ShapeInfo),
    ctypes.c_size_t,
)  # fmt: skip
CustomCreate = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(DelegateKernel)
)


class CustomOperator(ctypes.Structure):
    """MSCustomOperator"""

    _fields_ = (
        ("user", ctypes.c_void_p),
        ("infer", CustomInfer),
        ("create", CustomCreate),
        ("destroy", Destroy),
    )


NodeCallBack = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, TensorArray, TensorArray, CallBackParam)

_SIGNATURES = {
    "MSGetLastError": (ctypes.c_char_p, ()),
    "MSVersion": (ctypes.c_char_p, ()),
    "MSInstructionSet": (ctypes.c_char_p, ()),
    "MSKernelsInUse": (ctypes.c_char_p, ()),
    "MSContextCreate": (Handle, ()),
    "MSContextDestroy": (None, (ctypes.POINTER(Handle),)),
    "MSContextSetThreadNum": (ctypes.c_int, (Handle, ctypes.c_int32)),
    "MSContextSetThreadAffinityMode": (ctypes.c_int, (Handle, ctypes.c_int)),
    "MSContextSetThreadAffinityCoreList": (
        ctypes.c_int, (Handle, ctypes.POINTER(ctypes.c_int32), ctypes.c_size_t),
    ),
    "MSContextSetEnableParallel": (ctypes.c_int, (Handle, ctypes.c_bool)),
    "MSContextSetInterOpParallelNum": (ctypes.c_int, (Handle, ctypes.c_int32)),
    "MSContextSetSharedThreadPool": (ctypes.c_int, (Handle, ctypes.c_bool)),
    "MSContextAddDeviceInfo": (ctypes.c_int, (Handle, Handle)),
    "MSDeviceInfoCreate": (Handle, (ctypes.c_int,)),
    "MSDeviceInfoSetEnableFP16": (ctypes.c_int, (Handle, ctypes.c_bool)),
    "MSModelCreate": (Handle, ()),
    "MSModelDestroy": (None, (ctypes.POINTER(Handle),)),
    "MSModelBuildFromFile": (ctypes.c_int, (Handle, ctypes.c_char_p, ctypes.c_int, Handle)),
    "MSModelBuildFromModel": (ctypes.c_int, (Handle, Handle, Handle)),
    "MSModelShareWorkspace": (ctypes.c_int, (Handle, Handle)),
    "MSModelLoadConfig": (ctypes.c_int, (Handle, ctypes.c_char_p)),
    "MSModelUpdateConfig": (ctypes.c_int, (Handle, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)),
    "MSModelBuildFromEncryptedFile": (
        ctypes.c_int,
        (
            Handle, ctypes.c_char_p, ctypes.c_int, Handle, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p,
        ),
    ),
    "MSEncryptInPlace": (
        ctypes.c_int,
        (
            ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t,
            ctypes.c_char_p,
        ),
    ),
    "MSModelResize": (ctypes.c_int, (Handle, TensorArray, ctypes.POINTER(ShapeInfo), ctypes.c_size_t)),
    "MSModelRun": (ctypes.c_int, (Handle,)),
    "MSModelSetTrainMode": (ctypes.c_int, (Handle, ctypes.c_bool)),
    "MSModelGetTrainMode": (ctypes.c_bool, (Handle,)),
    "MSRunStepObserved": (ctypes.c_int, (Handle, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)),
    "MSModelSetLearningRate": (ctypes.c_int, (Handle, ctypes.c_float)),
    "MSModelGetLearningRate": (ctypes.c_float, (Handle,)),
    "MSModelSetupVirtualBatch": (ctypes.c_int, (Handle, ctypes.c_int32, ctypes.c_float, ctypes.c_float)),
    "MSModelGetWeights": (TensorArray, (Handle,)),
    "MSModelGetTrainableParams": (TensorArray, (Handle,)),
    "MSModelGetOptimizerParams": (TensorArray, (Handle,)),
    "MSModelGetGradients": (TensorArray, (Handle,)),
    "MSModelApplyGradients": (ctypes.c_int, (Handle, TensorArray)),
    "MSExportModel": (
        ctypes.c_int,
        (
            Handle, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_bool,
            ctypes.POINTER(ctypes.c_char_p), ctypes.c_size_t,
        ),
    ),
    "MSModelPredictObserved": (
        ctypes.c_int,
        (
            Handle, TensorArray, ctypes.POINTER(TensorArray), ctypes.c_void_p, ctypes.c_void_p,
            ctypes.c_void_p,
        ),
    ),
    "MSModelGetOutputsByNodeName": (TensorArray, (Handle, ctypes.c_char_p)),
    "MSModelUpdateWeights": (ctypes.c_int, (Handle, TensorArray)),
    "MSModelGetInfo": (ctypes.c_char_p, (Handle, ctypes.c_char_p)),
    "MSModelGetProgram": (ctypes.c_int, (Handle, ctypes.c_void_p)),
    "MSModelTimeRuns": (
        ctypes.c_int, (Handle, ctypes.c_size_t, ctypes.c_size_t, ctypes.POINTER(ctypes.c_double)),
    ),
    "MSModelProfile": (
        ctypes.c_int,
        (Handle, ctypes.c_size_t, ctypes.POINTER(NodeProfile), ctypes.POINTER(ctypes.c_size_t)),
    ),
    "MSDelegateNodeGetName": (ctypes.c_char_p, (ctypes.c_void_p,)),
    "MSDelegateNodeGetInputs": (_Tensors, (ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))),
    "MSDelegateNodeGetCustomAttribute": (
        ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_size_t)),
    ),
    "MSRegisterCustomOperator": (ctypes.c_int, (ctypes.c_char_p, ctypes.POINTER(CustomOperator))),
    "MSRunnerCreate": (Handle, ()),
    "MSRunnerDestroy": (None, (ctypes.POINTER(Handle),)),
    "MSRunnerUpdateConfig": (ctypes.c_int, (Handle, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p)),
    "MSRunnerInit": (ctypes.c_int, (Handle, ctypes.c_char_p, Handle, ctypes.c_int32)),
    "MSRunnerGetInputs": (TensorArray, (Handle,)),
    "MSRunnerGetOutputs": (TensorArray, (Handle,)),
    "MSRunnerPredict": (
        ctypes.c_int, (Handle, TensorArray, ctypes.POINTER(Handle), ctypes.POINTER(ctypes.c_size_t)),
    ),
    "MSModelGetInputs": (TensorArray, (Handle,)),
    "MSModelGetOutputs": (TensorArray, (Handle,)),
    "MSTensorCreate": (
        Handle,
        (
            ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.c_size_t, ctypes.c_void_p,
            ctypes.c_size_t,
        ),
    ),
    "MSTensorDestroy": (None, (ctypes.POINTER(Handle),)),
    "MSTensorGetName": (ctypes.c_char_p, (Handle,)),
    "MSTensorGetDataType": (ctypes.c_int, (Handle,)),
    "MSTensorGetShape": (ctypes.POINTER(ctypes.c_int64), (Handle, ctypes.POINTER(ctypes.c_size_t))),
    "MSTensorGetFormat": (ctypes.c_int, (Handle,)),
    "MSTensorGetQuantParams": (ctypes.c_size_t, (Handle, ctypes.POINTER(QuantParam), ctypes.c_size_t)),
    "MSTensorSetFormat": (ctypes.c_int, (Handle, ctypes.c_int)),
    "MSTensorSetName": (ctypes.c_int, (Handle, ctypes.c_char_p)),
    "MSTensorSetDataType": (ctypes.c_int, (Handle, ctypes.c_int)),
    "MSTensorSetShape": (ctypes.c_int, (Handle, ctypes.POINTER(ctypes.c_int64), ctypes.c_size_t)),
    "MSTensorGetMutableData": (ctypes.c_void_p, (Handle,)),
    "MSTensorGetDataSize": (ctypes.c_size_t, (Handle,)),
}  # fmt: skip


def folder() -> Path:
    """Where the libraries and headers of the runtime lie: for programs in C and C++."""
    for entry in (
        Path(__file__).parent / "_runtime",
        *(Path(p) / "mycelia_lite" / "_runtime" for p in sys.path),
    ):
        if entry.is_dir():
            return entry
    raise ImportError(
        "the runtime of mycelia-lite is not built: install the wheel, or run `hatch run native` in a checkout"
    )


@functools.cache
def library() -> ctypes.CDLL:
    """The library with its functions declared, the one that trains where there is one.

    Errors: ImportError if it was not built.
    """
    path = folder() / "libmycelia_lite_train.so"
    loaded = ctypes.CDLL(str(path if path.exists() else folder() / "libmycelia_lite.so"))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


@functools.cache
def _extension() -> ModuleType | None:
    """Calls without what ctypes costs; None where the runtime was built without Python's headers."""
    path = folder() / "_call.abi3.so"
    if not path.exists():
        return None
    loader = importlib.machinery.ExtensionFileLoader("mycelia_lite._call", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def bound(name: str, handle: int) -> Callable[[], int]:
    """The call of a function of the library that takes a handle and returns a status, with this handle."""
    function = getattr(library(), name)
    if (extension := _extension()) is None:
        return functools.partial(function, Handle(handle))
    return extension.bound(ctypes.cast(function, ctypes.c_void_p).value, handle)


def text(found: bytes) -> str:
    """A text of the library: names come from the file, which may hold any bytes."""
    return found.decode("utf-8", "backslashreplace")


def reason() -> str:
    """Why the thread's last call failed."""
    return text(library().MSGetLastError())


_raised: list[BaseException] = []  # by functions of Python that the library called, since the last check


def guarded(function: Callable) -> Callable:
    """The function as the library calls it: 0, or -1 if it raises; the next `check` tells of that."""

    def call(*arguments: object) -> int:
        try:
            function(*arguments)
        except BaseException as error:  # nothing is raised across the border
            _raised.append(error)
            return -1
        return 0

    return call


def check(status: int) -> None:
    """Raise RuntimeError with the code and the reason unless a call succeeded."""
    if status:
        cause = _raised.pop() if _raised else None
        _raised.clear()
        raise RuntimeError(f"{reason()} (code {status})") from cause
