"""`mycelia-lite benchmark`: times, profile, golden outputs, dumps, load of a parallel runner."""

from __future__ import annotations

import json
import math
import os
import string
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mycelia_lite.context import Context
from mycelia_lite.enums import ModelType
from mycelia_lite.model import Model
from mycelia_lite.runner import ModelParallelRunner
from mycelia_lite.tensor import Tensor

DUMP_VARIABLE = "MYCELIA_DUMP_CONFIG"
_GOLDEN_TYPES = {"FLOAT": np.float32, "INT32": np.int32, "INT8": np.int8, "UINT8": np.uint8}
_SHOWN = 20  # values of an output that are printed


class BenchmarkError(Exception):
    """What cannot be measured, or does not agree; the text says why."""


@dataclass
class Options:
    """The options of MindSpore Lite's benchmark, under their names with underscores."""

    model_file: str
    model_type: str = "MindIR"
    in_data_file: str = ""
    input_shapes: str = ""
    device: str = "CPU"
    num_threads: int = 2
    cpu_bind_mode: int = 1
    cpu_core_list: str = ""
    enable_fp16: bool = False
    enable_parallel: bool = False
    inter_op_parallel_num: int = 1
    loop_count: int = 10
    warm_up_loop_count: int = 3
    time_profiling: bool = False
    perf_profiling: bool = False
    benchmark_data_file: str = ""
    benchmark_data_type: str = "FLOAT"
    accuracy_threshold: float = 0.5
    cosine_distance_threshold: float = -1.1
    enable_parallel_predict: bool = False
    parallel_num: int = 2
    parallel_task_num: int = 2
    workers_num: int = 2
    decrypt_key: str = ""
    config_file: str = ""


def run(options: Options, show: Callable[[str], None] = print) -> None:
    """Do what the options say, line by line to `show`.

    Errors: BenchmarkError for options that cannot be, files that do not fit and outputs that differ from the
    golden ones; RuntimeError of the runtime.
    """
    _check(options)
    context = _context(options)
    if options.enable_parallel_predict:
        _measure_runner(options, context, show)
        return
    model = Model()
    begin = time.perf_counter()
    model.build_from_file(
        options.model_file,
        ModelType.MINDIR_LITE,
        context,
        options.config_file,
        dec_key=bytes.fromhex(options.decrypt_key),
    )
    show(f"PrepareTime = {(time.perf_counter() - begin) * 1000:.3f} ms")
    shapes = _shapes(options.input_shapes)
    if shapes:
        model.resize(model.get_inputs(), shapes)
    _fill(model.get_inputs(), options.in_data_file)
    dump = os.environ.get(DUMP_VARIABLE)
    if dump:
        _dump(model, Path(dump), show)
        return
    if options.benchmark_data_file:
        model.predict(model.get_inputs())
        _compare(model.get_outputs(), options, show)
        return
    _measure(model, options, show)


def _check(options: Options) -> None:
    if options.device != "CPU":
        raise BenchmarkError(f"device must be CPU, but got {options.device!r}")
    if options.model_type not in ("MindIR", "MindIR_Lite"):
        raise BenchmarkError(f"modelType must be MindIR or MindIR_Lite, but got {options.model_type!r}")
    if options.benchmark_data_type not in _GOLDEN_TYPES:
        names = ", ".join(_GOLDEN_TYPES)
        raise BenchmarkError(
            f"benchmarkDataType must be one of {names}, but got {options.benchmark_data_type!r}"
        )
    if options.perf_profiling:
        raise BenchmarkError("perfProfiling: counters of the processor are not read; use timeProfiling")
    digits = len(options.decrypt_key)
    if digits not in (0, 32, 48, 64) or not set(options.decrypt_key) <= set(string.hexdigits):
        # the key itself is not repeated: it would end in a log
        raise BenchmarkError(
            f"decryptKey must be 32, 48 or 64 hexadecimal digits, but got {digits} characters"
        )
    if options.enable_parallel_predict and (options.decrypt_key or options.config_file):
        name = "decryptKey" if options.decrypt_key else "configFile"
        raise BenchmarkError(f"{name} is for one model: enableParallelPredict measures a runner without it")
    for name, least in (
        ("loop_count", 1), ("warm_up_loop_count", 0), ("parallel_num", 1), ("parallel_task_num", 1),
    ):  # fmt: skip
        if getattr(options, name) < least:
            raise BenchmarkError(f"{name} must be at least {least}, but got {getattr(options, name)}")


def _context(options: Options) -> Context:
    context = Context()
    try:
        context.cpu.thread_num = options.num_threads
        context.cpu.thread_affinity_mode = options.cpu_bind_mode
        if options.cpu_core_list:
            context.cpu.thread_affinity_core_list = [int(core) for core in options.cpu_core_list.split(",")]
        context.cpu.inter_op_parallel_num = max(
            options.inter_op_parallel_num, 2 if options.enable_parallel else 1
        )
        context.cpu.precision_mode = "preferred_fp16" if options.enable_fp16 else "enforce_fp32"
        context.parallel.workers_num = options.workers_num
    except ValueError as error:
        raise BenchmarkError(str(error)) from None
    return context


def _shapes(text: str) -> list[list[int]]:
    try:
        return [[int(size) for size in one.split(",") if size] for one in text.split(":")] if text else []
    except ValueError:
        raise BenchmarkError(f"inputShapes must look like 1,32,32,3:1,10, but got {text!r}") from None


def _fill(inputs: Sequence[Tensor], files: str) -> None:
    """Inputs from raw files, or from a fixed seed: values in [0, 1), integers 0 or 1."""
    names = files.split(",") if files else []
    if names and len(names) != len(inputs):
        raise BenchmarkError(f"inDataFile names {len(names)} files, the model has {len(inputs)} inputs")
    rng = np.random.default_rng(1)
    for i, tensor in enumerate(inputs):
        dtype = tensor.dtype.numpy
        if not names:
            real = rng.random(tensor.shape) if dtype.kind == "f" else rng.integers(0, 2, tensor.shape)
            tensor.set_data_from_numpy(real.astype(dtype))
            continue
        data = Path(names[i]).read_bytes()
        if len(data) != tensor.data_size:
            raise BenchmarkError(
                f"{names[i]} has {len(data)} bytes, input '{tensor.name}' of shape {tensor.shape} takes "
                f"{tensor.data_size}"
            )
        tensor.set_data_from_numpy(np.frombuffer(data, dtype).reshape(tensor.shape))


# ---- times -------------------------------------------------------------------------------------------------


def _measure(model: Model, options: Options, show: Callable[[str], None]) -> None:
    if options.time_profiling:
        model.time_runs(options.warm_up_loop_count, 0)
        begin = time.perf_counter()
        nodes = model.profile(options.loop_count)
        total = (time.perf_counter() - begin) * 1000
        _show_profile(nodes, total, options.loop_count, show)
    taken = model.time_runs(options.warm_up_loop_count, options.loop_count)
    show(
        f"Model = {Path(options.model_file).name}, NumThreads = {options.num_threads}, "
        f"MinRunTime = {min(taken):.6f} ms, MaxRuntime = {max(taken):.6f} ms, "
        f"AvgRunTime = {sum(taken) / len(taken):.6f} ms"
    )
    for name in ("precision", "isa", "weight_bytes", "packed_bytes", "arena_bytes"):
        show(f"{name} = {model.get_model_info(name)}")
    show(f"peak_resident_bytes = {peak_resident_bytes()}")


def peak_resident_bytes() -> int:
    """The most memory that this process had so far; 0 where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def _show_profile(
    nodes: list[tuple[str, str, float, int]], total: float, loops: int, show: Callable[[str], None]
) -> None:
    kernels = sum(taken for *_, taken, _ in nodes)
    types: dict[str, tuple[float, int]] = {}
    for _, kind, taken, calls in nodes:
        before = types.get(kind, (0.0, 0))
        types[kind] = (before[0] + taken, before[1] + calls)

    def table(title: str, rows: list[tuple[str, float, int]]) -> None:
        width = max([len(title), *(len(name) for name, _, _ in rows)])
        show(f"{title:{width}}  avg(ms)      percent   calledTimes  opTotalTime")
        for name, taken, calls in rows:
            share = taken / kernels if kernels else 0.0
            show(f"{name:{width}}  {taken / loops:<11.6f}  {share:<8.6f}  {calls:<11}  {taken:.6f}")
        show("-" * (width + 52))

    table("opName", [(name, taken, calls) for name, _, taken, calls in nodes if calls])
    table("opType", [(kind, *cost) for kind, cost in sorted(types.items(), key=lambda item: -item[1][0])])
    show(f"total time : {total:.5f} ms, kernel cost : {kernels:.5f} ms")


def _measure_runner(options: Options, context: Context, show: Callable[[str], None]) -> None:
    """`parallel_num` clients call a runner `parallel_task_num` times each."""
    runner = ModelParallelRunner()
    begin = time.perf_counter()
    runner.build_from_file(options.model_file, ModelType.MINDIR_LITE, context)
    show(f"parallel predict init time : {(time.perf_counter() - begin) * 1000:.3f} ms")
    shapes = _shapes(options.input_shapes)
    taken: list[float] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            inputs = []
            for i, described in enumerate(runner.get_inputs()):
                shape = shapes[i] if shapes else described.shape
                inputs.append(Tensor(shape=shape, dtype=described.dtype))
            _fill(inputs, options.in_data_file)
            for task in range(options.warm_up_loop_count + options.parallel_task_num):
                start = time.perf_counter()
                runner.predict(inputs)
                if task >= options.warm_up_loop_count:
                    taken.append((time.perf_counter() - start) * 1000)
        except BaseException as error:  # told by the main thread
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(options.parallel_num)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = (time.perf_counter() - begin) * 1000
    if failed:
        raise failed[0]
    show(f"parallel predict of {len(taken)} tasks by {options.parallel_num} clients took {total:.3f} ms")
    show(
        f"Model = {Path(options.model_file).name}, NumThreads = {options.num_threads}, "
        f"MinRunTime = {min(taken):.6f} ms, MaxRuntime = {max(taken):.6f} ms, "
        f"AvgRunTime = {sum(taken) / len(taken):.6f} ms"
    )
    show(f"peak_resident_bytes = {peak_resident_bytes()}")


# ---- golden outputs ----------------------------------------------------------------------------------------


def read_golden(path: str, kind: str) -> dict[str, np.ndarray]:
    """Tensors of a text file: lines `name ndim d0 d1 ...`, then the values.  Errors: BenchmarkError."""
    lines = [line.split() for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    found: dict[str, np.ndarray] = {}
    for i in range(0, len(lines) - 1, 2):
        head, values = lines[i], lines[i + 1]
        try:
            shape = [int(size) for size in head[2 : 2 + int(head[1])]]
            found[head[0]] = np.array(values, np.float64).astype(_GOLDEN_TYPES[kind]).reshape(shape)
        except (ValueError, IndexError):
            raise BenchmarkError(
                f"{path}, tensor {i // 2}: expected 'name ndim d0 d1 ...' and then as many values, but got "
                f"'{' '.join(head)[:80]}' and {len(values)} values"
            ) from None
    if not found or len(lines) % 2:
        raise BenchmarkError(f"{path} has {len(lines)} lines, expected two for each tensor")
    return found


def mean_bias(golden: np.ndarray, value: np.ndarray) -> float:
    """Percent: the mean of |value - golden| relative to |golden| where that is not next to 0."""
    golden, value = golden.astype(np.float64).ravel(), value.astype(np.float64).ravel()
    if not np.isfinite(value).all():
        return math.inf
    off = np.abs(value - golden)
    tolerable = 1e-5 + 1e-5 * np.abs(golden)
    counted = off > tolerable
    if not counted.any():
        return 0.0
    relative = off[counted] / np.maximum(np.abs(golden[counted]), np.finfo(np.float32).tiny)
    return float(100 * relative.mean())


def cosine(golden: np.ndarray, value: np.ndarray) -> float:
    """The cosine of the angle between two tensors as vectors; 1 if both are 0."""
    a, b = golden.astype(np.float64).ravel(), value.astype(np.float64).ravel()
    length = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / length if length else float(not a.any() and not b.any())


def _compare(outputs: Sequence[Tensor], options: Options, show: Callable[[str], None]) -> None:
    golden = read_golden(options.benchmark_data_file, options.benchmark_data_type)
    total, least = 0.0, 1.0
    for tensor in outputs:
        if tensor.name not in golden:
            raise BenchmarkError(
                f"{options.benchmark_data_file} has no output '{tensor.name}', only {', '.join(golden)}"
            )
        expected, value = golden[tensor.name], tensor.get_data_to_numpy()
        if expected.shape != value.shape:
            raise BenchmarkError(
                f"output '{tensor.name}' has shape {list(value.shape)}, the golden one {list(expected.shape)}"
            )
        show(f"Data of node {tensor.name} : {' '.join(f'{v:g}' for v in value.ravel()[:_SHOWN])}")
        bias = mean_bias(expected, value)
        show(f"Mean bias of node/tensor {tensor.name} : {bias:.6f}%")
        show(f"Cosine distance of node/tensor {tensor.name} : {cosine(expected, value):.6f}")
        total, least = total + bias, min(least, cosine(expected, value))
    bias = total / len(outputs)
    show(f"Mean bias of all nodes/tensors: {bias:.6f}%")
    if bias > options.accuracy_threshold:
        raise BenchmarkError(
            f"Mean bias of all nodes/tensors is too big: {bias:.6f}%, the threshold is "
            f"{options.accuracy_threshold}%"
        )
    if least < options.cosine_distance_threshold:
        raise BenchmarkError(
            f"the least cosine distance is {least:.6f}, the threshold {options.cosine_distance_threshold}"
        )


# ---- dump --------------------------------------------------------------------------------------------------


def _dump(model: Model, config: Path, show: Callable[[str], None]) -> None:
    """One run that writes what nodes read and make: `{op}_{input|output}_{i}_{shape}_{type}_{format}.bin`."""
    try:
        settings = json.loads(config.read_text(encoding="utf-8"))["common_dump_settings"]
        mode, way = int(settings["dump_mode"]), int(settings["input_output"])
        wanted = {str(name) for name in settings.get("kernels", [])}
        folder = Path(settings["path"]) / str(settings.get("net_name", "model"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(
            f"{DUMP_VARIABLE}={config}: common_dump_settings is not right: {error!r}"
        ) from None
    if mode not in (0, 1) or way not in (0, 1, 2):
        raise BenchmarkError(f"{config}: dump_mode must be 0 or 1, input_output 0, 1 or 2")
    folder.mkdir(parents=True, exist_ok=True)
    written, met = 0, set()

    def save(name: str, side: str, tensors: list[Tensor]) -> None:
        nonlocal written
        for i, tensor in enumerate(tensors):
            shape = "_".join(str(size) for size in tensor.shape)
            parts = [
                name.replace("/", "-"),
                side,
                str(i),
                shape,
                tensor.dtype.name.lower(),
                tensor.format.name,
            ]
            tensor.get_data_to_numpy().tofile(folder / f"{'_'.join(part for part in parts if part)}.bin")
            written += 1

    def before(inputs: list[Tensor], outputs: list[Tensor], name: str, kind: str) -> bool:
        met.add(name)
        if way != 2 and (mode == 0 or name in wanted):
            save(name, "input", inputs)
        return True

    def after(inputs: list[Tensor], outputs: list[Tensor], name: str, kind: str) -> bool:
        if way != 1 and (mode == 0 or name in wanted):
            save(name, "output", outputs)
        return True

    model.predict(model.get_inputs(), None, before, after)
    if mode == 1 and wanted - met:
        raise BenchmarkError(f"{config}: the model has no nodes {', '.join(sorted(wanted - met))}")
    show(f"{written} tensors were written to {folder}")
