"""Kernels of variants that this process does not run: all op samples, replayed by native/tests/replay.cc.

The portable variant runs here; the NEON variant is cross-compiled and runs in an emulator where both tools
exist. Compiling both takes minutes, so this runs only when asked for: ``MYCELIA_REPLAY=1 pytest
packages/backend-cpu/tests/test_replay.py``, after a change of kernels. Builds are kept under build/replay-*.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import mycelia.ops  # noqa: F401  (families register on import)
from mycelia import dtypes
from mycelia.backends.reference import evaluate
from mycelia.backends.registry import Kernel, shorts_of
from mycelia.engine.dispatch import Typing
from mycelia.ir.types import UNKNOWN, TensorType
from mycelia.ops.define import LIST, find
from mycelia.testing.samples import Rand, Sample, all_samples
from mycelia.testing.tolerances import tolerance

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = PACKAGE / "native" / "tests"
CROSS_COMPILER = "aarch64-linux-gnu-g++"
EMULATOR = next(filter(None, map(shutil.which, ("qemu-aarch64", "qemu-aarch64-static"))), None)
INPLACE = 1  # MYC_INPLACE of abi.h

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("MYCELIA_REPLAY"), reason="compiles for minutes: set MYCELIA_REPLAY=1"
    ),
    pytest.mark.skipif(
        not SOURCES.is_dir() or not shutil.which("cmake") or not shutil.which("c++"),
        reason="needs sources, CMake and a compiler",
    ),
]


@dataclass
class Machine:
    """Where native programs were built and what runs them."""

    isa: str
    build: Path
    prefix: list[str]

    def run(self, program: str, *arguments) -> str:
        command = [*self.prefix, self.build / program, *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert result.returncode == 0, f"{program}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout


def _build(isa: str, prefix: list[str], options: list[str], targets: list[str]) -> Machine:
    build = PACKAGE / "build" / f"replay-{isa}"
    for command in (
        ["cmake", "-S", SOURCES, "-B", build, f"-DMYCELIA_ISA={isa}", *options],
        ["cmake", "--build", build, "--parallel", "2", "--target", *targets],
    ):
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr
    return Machine(isa, build, prefix)


@pytest.fixture(scope="module", params=["generic", "neon"])
def machine(request) -> Machine:
    """The host with the portable variant, then an emulated ARM processor."""
    if request.param == "generic":
        return _build("generic", [], [], ["replay"])
    missing = [tool for tool in (CROSS_COMPILER, EMULATOR or "qemu-aarch64") if not shutil.which(tool)]
    if missing:
        pytest.skip(f"the NEON variant needs {' and '.join(missing)}")
    options = [
        "-DCMAKE_SYSTEM_NAME=Linux",
        "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
        f"-DCMAKE_CXX_COMPILER={CROSS_COMPILER}",
        "-DCMAKE_EXE_LINKER_FLAGS=-static",
    ]
    return _build("neon", [EMULATOR], options, ["replay", "gemm_neon", "simd_math_neon", "threadpool"])


def _larger_samples():
    """Calls big enough for vector loops, tiles and several threads: the ops' own samples are small."""
    rand = Rand(7)
    for name, args, attrs in (
        ("add", (rand(300, 1001), rand(1001)), {}),
        ("exp", (rand(100003, low=-20, high=20),), {}),
        ("tanh", (rand(100003, low=-6, high=6),), {}),
        ("gelu", (rand(100003, low=-5, high=5),), {}),
        ("silu", (rand(100003, low=-9, high=9),), {}),
        ("softmax", (rand(201, 513, low=-9, high=9),), {}),
        ("softmax", (rand(30, 77, 65, low=-9, high=9),), {"axis": 1}),
        ("log_softmax", (rand(201, 513, low=-9, high=9),), {}),
        ("mat_mul", (rand(131, 203), rand(203, 157)), {}),
        ("batch_matmul", (rand(5, 33, 70), rand(5, 49, 70)), {"transpose_b": True}),
        ("dense", (rand(67, 130), rand(91, 130), rand(91)), {}),
        ("sum", (rand(130, 70, 90),), {"dim": (0, 2)}),
        ("mean", (rand(513, 401),), {"axis": 1}),
        ("layer_norm", (rand(203, 257), rand(257), rand(257)), {}),
        ("rms_norm", (rand(203, 257), rand(257)), {}),
        ("group_norm", (rand(4, 24, 11, 13), rand(24), rand(24)), {"num_groups": 6}),
        ("batch_norm_train", (rand(24), rand.positive(24), rand(8, 24, 19, 21), rand(24), rand(24)), {}),
        ("transpose", (rand(67, 130, 41),), {"dims": (2, 0, 1)}),
    ):
        op = find(name)
        known = {a.name for a in op.definition.attrs}
        assert set(attrs) <= known, f"{name} has {sorted(known)}"
        yield Sample(op, 1000, args, attrs)
    for pad, stride, group, kernel in (
        ((1, 1, 1, 1), (1, 1), 1, 3),
        ((2, 2, 2, 2), (2, 2), 1, 5),
        ((0, 0, 0, 0), (1, 1), 1, 1),
        ((1, 1, 1, 1), (1, 1), 16, 3),
    ):
        x, w = rand(3, 16, 29, 31), rand(24 if group == 1 else 16, 16 // group, kernel, kernel)
        shared = {"stride": stride, "pad": pad, "dilation": (1, 1), "group": group}
        forward = Sample(find("conv"), 1000, (x, w), shared)
        yield forward
        ct = np.asarray(forward.call()[0].asnumpy())
        yield Sample(find("conv_input_grad"), 1000, (ct, w), {"size": x.shape[2:], **shared})
        yield Sample(find("conv_weight_grad"), 1000, (x, ct), {"kernel": (kernel, kernel), **shared})
    for name in ("max_pool", "avg_pool"):
        attrs = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1, 1, 1)}
        yield Sample(find(name), 1000, (rand.distinct(3, 16, 29, 31),), attrs)
    for sample in all_samples(("adam", "adam_weight_decay", "apply_momentum")):
        if sample.args[0].shape == (37,):
            args = tuple(np.tile(a, 2777) if a.ndim else a for a in sample.args)
            yield replace(sample, index=1000, args=args)


def _other_dtypes(sample: Sample):
    """A float32 sample in float64, an int32 one in int64: kernels that the ops' own samples leave out."""
    arrays = [a for a in sample.args if isinstance(a, np.ndarray)]
    for have, want in (("float32", "float64"), ("int32", "int64")):
        if arrays and all(a.dtype == have for a in arrays) and "_dtypes" not in sample.options:
            cast = tuple(a.astype(want) if isinstance(a, np.ndarray) else a for a in sample.args)
            yield replace(sample, index=sample.index + 2000, args=cast)


@dataclass
class Call:
    """One kernel call: flat inputs, where outputs go, and what the body gives."""

    name: str
    kernel: int
    attrs: bytes
    arrays: list
    out_types: tuple
    memory: list[int]  # per output the input whose memory it is, -1: its own
    want: tuple
    rtol: float | None


def _flat(sample: Sample):
    definition = sample.op.definition
    n = len(definition.params)
    given, positional = sample.args[:n], sample.args[n:]
    values, counts = [], []
    for (_, kind), value in zip(definition.params, [*given, *[None] * (n - len(given))], strict=True):
        members = list(value) if kind == LIST else [value]
        values += members
        counts.append(len(members))
    named = {a.name: v for a, v in zip(definition.attrs, positional)} | sample.attrs
    attrs = definition.canonical_attrs(tuple(named.get(a.name, a.default) for a in definition.attrs))
    return values, tuple(counts), attrs


def _type_of(value):
    if isinstance(value, (np.ndarray, np.generic)):
        return TensorType(dtypes.as_dtype(value.dtype), value.shape)
    return None if value is None else type(value)


def _calls_of(sample: Sample, table: dict[str, list[tuple[int, Kernel]]]):
    """The sample as calls of its kernel: with outputs of their own, and in place where the kernel can."""
    definition = sample.op.definition
    # The body cannot read what the library packs, nor the other way round.
    skipped = not sample.options.get("_value", True) or "_prepare" in sample.options
    if definition.view or definition.dynamic or definition.composed or skipped:
        return
    values, counts, attrs = _flat(sample)
    typing = Typing(definition, tuple(map(_type_of, values)), counts, attrs)
    shorts = shorts_of(typing.in_types)
    found = next(((i, k) for i, k in table.get(definition.name, ()) if k.takes(shorts)), None)
    if found is None or any(UNKNOWN in t.shape for t in typing.out_types):
        return
    index, kernel = found
    arrays = [
        None if t is None else np.array(v, dtype=t.dtype.np, order="C")
        for v, t in zip(values, typing.in_types, strict=True)
    ]
    copies = [None if a is None else a.copy() for a in arrays]
    want = evaluate(definition, definition.group(tuple(copies), counts), attrs, typing.out_types)
    updated = [definition.param_names.index(u) for u in definition.updates]
    own = [-1] * len(want)
    memories = [own]
    if kernel.flags & INPLACE:
        reuse = updated or [i for i, t in enumerate(typing.in_types) if t == typing.out_types[0]][:1]
        if reuse:
            memories.append((reuse + own)[: len(want)])
    for memory in memories:
        name = sample.name + (" in place" if memory is not own else "")
        yield Call(name, index, definition.pack(attrs), arrays, typing.out_types, memory, want,
                   sample.options.get("_rtol"))  # fmt: skip


def _filled(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _written(calls: list[Call]) -> bytes:
    parts = [_numbers(len(calls))]
    for call in calls:
        parts += [_numbers(call.kernel, len(call.attrs)), _filled(call.attrs), _numbers(len(call.arrays))]
        for array in call.arrays:
            if array is None:
                parts.append(_numbers(-1))
            else:
                parts.append(_numbers(dtypes.as_dtype(array.dtype).code, array.ndim, *array.shape))
                parts.append(_filled(array.tobytes()))
        parts.append(_numbers(len(call.out_types)))
        for t, memory in zip(call.out_types, call.memory, strict=True):
            parts.append(_numbers(t.dtype.code, t.rank, *t.shape, memory))
    return b"".join(parts)


def _difference(got: np.ndarray, want: np.ndarray, dtype, rtol: float | None) -> str | None:
    """What is wrong with a result, None when it is within the tolerance of its dtype."""
    try:
        if got.dtype.kind not in "fc":
            np.testing.assert_array_equal(got, want)
        else:
            relative, share = tolerance(dtype)
            finite = np.abs(want[np.isfinite(want)])
            np.testing.assert_allclose(
                got,
                want,
                rtol=rtol or relative,
                atol=share * float(finite.max()) if finite.size else 0.0,
            )
    except AssertionError as e:
        return str(e)
    return None


@pytest.mark.parametrize("threads", [1, 3])
def test_kernels_equal_bodies(machine, threads, tmp_path):
    assert machine.run("replay", "best").strip() == machine.isa  # the build has no other variant
    table: dict[str, list[tuple[int, Kernel]]] = {}
    for index, line in enumerate(machine.run("replay", machine.isa, "list").splitlines()):
        op, names, flags = line.split()
        table.setdefault(op, []).append((index, Kernel(tuple(names.split(",")), int(flags))))
    for entries in table.values():
        entries.sort(key=lambda entry: entry[1].dtypes == ("*",))  # a kernel for any dtypes comes last
    samples = [*all_samples(table), *_larger_samples()]
    samples += [other for sample in samples for other in _other_dtypes(sample)]
    calls = [call for sample in samples for call in _calls_of(sample, table)]
    (tmp_path / "calls").write_bytes(_written(calls))
    machine.run("replay", machine.isa, threads, tmp_path / "calls", tmp_path / "results")

    results, at, wrong = (tmp_path / "results").read_bytes(), 0, []
    codes = Counter()
    for call in calls:
        (code,) = struct.unpack_from("<q", results, at)
        at += 8
        codes[code] += 1
        if code > 1:  # 1: the kernel leaves this case to the body
            wrong.append(f"{call.name}: the kernel failed with code {code}")
        if code != 0:
            continue
        for i, (t, want) in enumerate(zip(call.out_types, call.want, strict=True)):
            got = np.frombuffer(results, t.dtype.np, t.size, at).reshape(t.shape)
            at += -(-t.nbytes // 8) * 8
            if t.dtype is dtypes.bfloat16:
                got = dtypes.from_bfloat16_bits(got)
            difference = _difference(got, want, t.dtype, call.rtol)
            if difference:
                wrong.append(f"{call.name} output {i}: {difference}")
    assert at == len(results)
    assert codes[0] > 1000, codes
    assert not wrong, f"{len(wrong)} of {len(calls)}:\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize("machine", ["neon"], indirect=True)
@pytest.mark.parametrize("command", ["gemm_neon", "simd_math_neon", "threadpool without-fork"])
def test_program_finds_no_error(machine, command):
    """The programs of test_native_programs.py on a processor that is not the host."""
    machine.run(*command.split())
