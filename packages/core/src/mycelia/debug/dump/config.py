"""The configuration of a data dump: MindSpore's JSON file, by the old rule and the new, checked field by
field.
"""

from __future__ import annotations

import bisect
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mycelia.debug import compressed
from mycelia.debug.dump import condition_entries
from mycelia.debug.dump.condition_entries import shown
from mycelia.engine.base import config, errors, log

DUMP_ALL, DUMP_KERNELS, DUMP_TARGETS = 0, 1, 2  # dump_mode
BOTH, INPUTS, OUTPUTS = 0, 1, 2  # input_output
CHECK_NOTHING, OVERFLOW, EXCEPTION = 0, 3, 4  # op_debug_mode

#: Names in `statistic_category` -> columns of statistic.csv, but for the hashes.
CATEGORIES = {
    "max": "Max Value",
    "min": "Min Value",
    "avg": "Avg Value",
    "count": "Count",
    "negative zero count": "Negative Zero Count",
    "positive zero count": "Positive Zero Count",
    "nan count": "NaN Count",
    "negative inf count": "Negative Inf Count",
    "positive inf count": "Positive Inf Count",
    "zero count": "Zero Count",
    "md5": "MD5",
    "l2norm": "L2Norm Value",
    "hash": "SHA1",
    "hash:sha1": "SHA1",
    "hash:md5": "MD5",
}

#: Those that a device computes.
DEVICE_CATEGORIES = ("max", "min", "avg", "l2norm")


class Kernels:
    """Which operators are dumped in mode 1: full names, types, or ``name-regex(EXPR)``."""

    def __init__(self, entries: list[str]) -> None:
        self.names: set[str] = set()
        self.types: dict[str, str] = {}  # in lower case -> the entry
        self.patterns: dict[re.Pattern, str] = {}
        for entry in entries:
            expression = re.fullmatch(r"name-regex\((.*)\)", entry, re.DOTALL)
            if entry.startswith("name-regex(") and expression is None:
                raise _invalid("kernels", "names, types, or regular expressions as name-regex(EXPR)", entry)
            if expression:
                try:
                    self.patterns[re.compile(expression[1])] = entry
                except (re.error, OverflowError, RecursionError) as cause:
                    raise _invalid(
                        "kernels", f"regular expressions inside name-regex(): {cause}", entry
                    ) from None
            elif "/" in entry or re.search(r"-op\d+$", entry):
                self.names.add(entry)
            else:
                self.types[entry.lower()] = entry
        self.unmet = dict.fromkeys(entries)  # entries that no operator met so far, in order

    def matches(self, kind: str, name: str) -> bool:
        found = name if name in self.names else self._by_rule(kind.lower(), name)
        if found is None:
            return False
        self.unmet.pop(found, None)
        return True

    def _by_rule(self, kind: str, name: str) -> str | None:
        """The entry with a type or an expression that an operator meets."""
        by_type = (entry for part, entry in self.types.items() if part in kind)
        by_name = (entry for pattern, entry in self.patterns.items() if pattern.search(name))
        return next(by_type, None) or next(by_name, None)


@dataclass(frozen=True, slots=True)
class DumpConfig:
    """What is dumped, and where to. `text` is the file that says so, copied into the dump.

    `iterations`: ranges with both ends, in order and apart from each other, None for all. `last_steps`: N > 0
    keeps the last N steps in memory, `last_bytes` what of the last steps fits into so much of it; they are
    written on trouble only, an operator that raises or a value that is not finite; `conditions` likewise,
    when one is hit. `signal`: a step is dumped after each such signal, and no other. `sample_num`: of larger
    tensors the first so many elements, 0 all. `device_statistics`: computed by the device, in float32 with
    "high", in the tensor's own type with "low"; "" by the host. `naming`: the version of MindSpore by whose
    rule operators and files are called. `compression`: of synchronous dumps, "zstd" or "none". `file_format`:
    of asynchronous dumps. `keeps_layouts`: tensors are written as they lie in the device, by the name of its
    layout.
    """

    path: str
    net_name: str = "Net"
    dump_mode: int = DUMP_ALL
    iterations: tuple[tuple[int, int], ...] | None = None
    saved_data: str = "tensor"
    input_output: int = BOTH
    kernels: Kernels = field(default_factory=lambda: Kernels([]))
    ranks: tuple[int, ...] | None = None
    categories: tuple[str, ...] = ("max", "min", "l2norm")
    op_debug_mode: int = CHECK_NOTHING
    overflow_number: int = 0
    initial_iteration: int = 0
    layout: str = "npy"
    save_kernel_args: bool = False
    last_steps: int = 0
    last_bytes: int = 0
    conditions: tuple[dict[str, Any], ...] = ()
    before: int = 0
    after: int = 0
    signal: str = ""
    eager: bool | None = None  # None: in PyNative mode
    text: str = ""
    asynchronous: bool = False
    overflow_bits: int = 3  # of the device's status, by which an operator overflowed
    sample_num: int = 0
    device_statistics: str = ""
    naming: str = "2.10"
    compression: str = "none"
    file_format: str = "bin"
    keeps_layouts: bool = False

    def has_iteration(self, number: int) -> bool:
        if self.iterations is None:
            return True
        place = bisect.bisect_right(self.iterations, (number, math.inf))  # asked in each step
        return place > 0 and number <= self.iterations[place - 1][1]

    @property
    def columns(self) -> list[str]:
        """Those of statistic.csv behind the fixed ones."""
        return list(dict.fromkeys(CATEGORIES[c] for c in self.categories))


def _invalid(name: str, expected: str, got: Any, kind: type = errors.MyceliaValueError) -> Exception:
    return errors.error(kind, "dump_config", f"the field '{name}' must be {expected}, but got {shown(got)}")


def read(path: str) -> DumpConfig:
    """The configuration in a JSON file.

    Errors: ValueError that names the field and what it may be, or says that the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        content = json.loads(text)
    except OSError as cause:
        raise errors.value_error("dump_config", f"{path!r} cannot be read: {cause}") from None
    except (ValueError, RecursionError) as cause:
        raise errors.value_error("dump_config", f"{path!r} is no JSON: {cause}") from None
    return parse(content, text)


def parse(content: Any, text: str = "") -> DumpConfig:
    """The configuration in an object as the file has it, or in the fields of `common_dump_settings` alone.

    Errors: ValueError that names the field and what it may be.
    """
    if not isinstance(content, Mapping):
        raise errors.value_error(
            "dump_config", f"it must be an object with 'common_dump_settings', but got {shown(content)}"
        )
    if not any(str(key).endswith("_dump_settings") for key in content):
        content = {"common_dump_settings": dict(content), "e2e_dump_settings": {"enable": True}}
    common = _section(content, "common_dump_settings", required=True)
    e2e = _section(content, "e2e_dump_settings")
    asynchronous = _section(content, "async_dump_settings")
    _warn_unknown(content, {"common_dump_settings", "e2e_dump_settings", "async_dump_settings"}, "")
    _warn_unknown(common, _COMMON, "common_dump_settings.")
    _warn_unknown(e2e, _E2E, "e2e_dump_settings.")
    _warn_unknown(asynchronous, _ASYNC, "async_dump_settings.")
    synchronous = _flag(e2e, "enable", True if e2e else False, "e2e_dump_settings.enable")
    if not synchronous and not _flag(asynchronous, "enable", False, "async_dump_settings.enable"):
        raise errors.value_error(
            "dump_config",
            "one of 'e2e_dump_settings' and 'async_dump_settings' must have 'enable': true, but none has",
        )
    found = _common(common, text if text and "net_name" in common and "input_output" in common else "")
    if not found.text:  # MindInsight opens no dump that leaves these out
        said = {**common, "net_name": found.net_name, "input_output": found.input_output}
        whole = {**content, "common_dump_settings": said}
        # Sections that are not enabled may hold what JSON has not.
        found = _replace(found, text=json.dumps(whole, default=repr, skipkeys=True))
    if found.compression != "none":
        if not synchronous or found.layout == "bin":
            what = "asynchronous dumps" if not synchronous else "the layout 'bin'"
            raise _invalid("compression", f"'none', since {what} cannot be compressed", found.compression)
        compressed.library("dump_config")
    if not synchronous:
        for field in ("last_steps", "last_bytes", "conditions"):
            if getattr(found, field):
                raise _invalid(field, "left out: asynchronous dumps keep no steps", common[field])
        found = _replace(found, asynchronous=True)
        old = _choice(asynchronous, "op_debug_mode", (0, 1, 2, 3), 0, "async_dump_settings.op_debug_mode")
        if old and "op_debug_mode" not in common:  # the old rule: 1 AI core, 2 atomic, 3 both
            found = _replace(found, op_debug_mode=OVERFLOW, overflow_bits=old)
        file_format = _choice(
            asynchronous, "file_format", ("npy", "bin"), "bin", "async_dump_settings.file_format"
        )
        found = _replace(found, file_format=file_format)
    return _synchronous(found, e2e)


def _synchronous(found: DumpConfig, e2e: Mapping) -> DumpConfig:
    """`found` with what `e2e_dump_settings` says of files and statistics."""
    where = "e2e_dump_settings."
    sampled = _choice(e2e, "sample_mode", (0, 1), 0, f"{where}sample_mode")
    number = _count(e2e, "sample_num", 100, 1, f"{where}sample_num")
    device = _choice(e2e, "stat_calc_mode", ("host", "device"), "host", f"{where}stat_calc_mode") == "device"
    precision = _choice(
        e2e, "device_stat_precision_mode", ("high", "low"), "high", f"{where}device_stat_precision_mode"
    )
    if sampled and found.op_debug_mode != CHECK_NOTHING:
        _warn("sample_mode is 0 where op_debug_mode is %d: tensors are written whole", found.op_debug_mode)
        sampled = 0
    if device and found.saved_data != "statistic":
        _warn(
            "stat_calc_mode is 'host' where saved_data is %r, since tensors come to the host",
            found.saved_data,
        )
        device = False
    on_host = [c for c in found.categories if c not in DEVICE_CATEGORIES] if device else []
    if on_host:
        _warn(
            "stat_calc_mode is 'device', which has no %s in statistic_category", ", ".join(map(repr, on_host))
        )
    return _replace(
        found,
        keeps_layouts=not _flag(e2e, "trans_flag", True, f"{where}trans_flag"),
        save_kernel_args=_flag(e2e, "save_kernel_args", False, f"{where}save_kernel_args"),
        sample_num=number if sampled else 0,
        device_statistics=precision if device else "",
        categories=tuple(c for c in found.categories if c not in on_host),
    )


def _replace(found: DumpConfig, **changes: Any) -> DumpConfig:
    return DumpConfig(**{f.name: changes.get(f.name, getattr(found, f.name)) for f in fields(found)})


def _common(common: Mapping, text: str) -> DumpConfig:
    mode = _choice(common, "dump_mode", (DUMP_ALL, DUMP_KERNELS, DUMP_TARGETS), DUMP_ALL)
    checking = _choice(common, "op_debug_mode", (CHECK_NOTHING, OVERFLOW, EXCEPTION), CHECK_NOTHING)
    which = _choice(common, "input_output", (BOTH, INPUTS, OUTPUTS), BOTH)
    if checking == OVERFLOW and which != BOTH:
        raise _invalid("input_output", "0, since op_debug_mode is 3", which)
    if checking == EXCEPTION and which == OUTPUTS:
        raise _invalid("input_output", "0 or 1, since op_debug_mode is 4", which)
    kernels = common.get("kernels", [])
    if not isinstance(kernels, list) or not all(isinstance(k, str) for k in kernels):
        raise _invalid("kernels", "a list of strings", kernels)
    if mode == DUMP_KERNELS and not kernels:
        raise _invalid("kernels", "a list with the names of operators, since dump_mode is 1", kernels)
    return DumpConfig(
        path=_path(common),
        net_name=_net_name(common),
        dump_mode=mode,
        iterations=_iterations(common.get("iteration", "all")),
        saved_data=_choice(common, "saved_data", ("tensor", "statistic", "full"), "tensor"),
        input_output=which,
        kernels=Kernels(kernels),
        ranks=_ranks(common),
        categories=_categories(common),
        op_debug_mode=checking,
        overflow_number=_count(common, "overflow_number"),
        initial_iteration=_count(common, "initial_iteration"),
        layout=_choice(common, "layout", ("npy", "bin"), "npy"),
        naming=_choice(common, "naming", ("2.10", "2.0"), "2.10"),
        compression=_choice(common, "compression", ("none", "zstd"), "none"),
        last_steps=_count(common, "last_steps"),
        last_bytes=_count(common, "last_bytes"),
        conditions=condition_entries.checked(common.get("conditions", [])),
        before=_count(common, "before"),
        after=_count(common, "after"),
        signal=_signal(common),
        eager=_eager(common),
        text=text,
    )


def _section(content: Mapping, name: str, required: bool = False) -> Mapping:
    found = content.get(name)
    if found is None and not required:
        return {}
    if not isinstance(found, Mapping):
        raise _invalid(name, "an object", found)
    return found


def _warn(text: str, *args: Any) -> None:
    log.logger(__name__).warning(f"dump_config: {text}", *args)


def _warn_unknown(given: Mapping, known: set[str], where: str) -> None:
    for name in given:
        if name not in known:
            _warn("the field '%s%s' is unknown and ignored", where, name)


def _choice(given: Mapping, name: str, choices: tuple, default: Any, shown: str = "") -> Any:
    value = given.get(name, default)
    if isinstance(value, bool) or value not in choices:
        raise _invalid(shown or name, f"one of {', '.join(map(repr, choices))}", value)
    return value


def _flag(given: Mapping, name: str, default: bool, shown: str) -> bool:
    value = given.get(name, default)
    if not isinstance(value, bool):
        raise _invalid(shown, "true or false", value)
    return value


def _count(given: Mapping, name: str, default: int = 0, least: int = 0, shown: str = "") -> int:
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _invalid(shown or name, f"an integer from {least} on", value)
    return value


def _path(given: Mapping) -> str:
    path = given.get("path", "")
    if not isinstance(path, str):
        raise _invalid("path", "an absolute path", path)
    if not path:
        below = config.get("diagnostic_data_path")
        if not below:
            raise _invalid(
                "path", "an absolute path, unless the variable MS_DIAGNOSTIC_DATA_PATH is set", path
            )
        path = os.path.join(os.path.abspath(below), "debug_dump")
    if not os.path.isabs(path):
        raise _invalid("path", "an absolute path", path)
    if not _is_writable_name(path):
        raise _invalid("path", "an absolute path of names with at most 255 bytes", path)
    return path


def _is_writable_name(path: str) -> bool:
    """Whether file systems have such names at all."""
    try:
        return "\0" not in path and all(len(os.fsencode(part)) <= 255 for part in path.split(os.sep))
    except UnicodeEncodeError:
        return False


def _net_name(given: Mapping) -> str:
    name = given.get("net_name", "Net")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,255}", name) or name in (".", ".."):
        raise _invalid("net_name", "a name of letters, digits and _ . -, at most 255 of them", name)
    return name


def _iterations(value: Any) -> tuple[tuple[int, int], ...] | None:
    expected = "'all', or numbers and ranges such as '0|5-8|100-120'"
    if isinstance(value, int) and not isinstance(value, bool):  # the old rule
        if value < 0:
            raise _invalid("iteration", expected, value)
        return None if value == 0 else ((value, value),)
    if not isinstance(value, str):
        raise _invalid("iteration", expected, value)
    if value == "all":
        return None
    found = []
    for part in value.split("|"):
        match = re.fullmatch(r"\s*(\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?", part)
        low = int(match[1]) if match else 0
        high = int(match[2]) if match and match[2] else low
        if match is None or high < low:
            raise _invalid("iteration", expected, value)
        found.append((low, high))
    apart: list[tuple[int, int]] = []
    for low, high in sorted(found):
        if apart and low <= apart[-1][1]:
            low, high = apart[-1][0], max(high, apart[-1][1])
            apart.pop()
        apart.append((low, high))
    return tuple(apart)


def _ranks(given: Mapping) -> tuple[int, ...] | None:
    ranks = given.get("support_device")
    if ranks is None:
        return None
    if not isinstance(ranks, list) or not all(type(r) is int and r >= 0 for r in ranks):
        raise _invalid("support_device", "a list of integers from 0 on", ranks)
    return tuple(ranks)


def _categories(given: Mapping) -> tuple[str, ...]:
    chosen = given.get("statistic_category", ["max", "min", "l2norm"])
    if not isinstance(chosen, list) or not all(isinstance(c, str) and c in CATEGORIES for c in chosen):
        raise _invalid("statistic_category", f"a list of {', '.join(map(repr, CATEGORIES))}", chosen)
    return tuple(chosen)


def _signal(given: Mapping) -> str:
    import signal

    name = given.get("signal", "")
    if name == "":
        return name
    is_known = isinstance(name, str) and isinstance(getattr(signal, name, None), signal.Signals)
    if not is_known or name in ("SIGKILL", "SIGSTOP"):  # nobody may handle these
        raise _invalid("signal", "the name of a signal, such as 'SIGUSR1'", name)
    return name


def _eager(given: Mapping) -> bool | None:
    value = given.get("eager")
    if value is not None and not isinstance(value, bool):
        raise _invalid("eager", "true or false", value)
    return value


def wants_eager(found: DumpConfig) -> bool:
    """Whether eager operators are dumped: as the field `eager` says, else in PyNative mode."""
    return config.get("mode") != config.GRAPH_MODE if found.eager is None else found.eager


_COMMON = {
    "after", "before", "compression", "conditions", "dump_mode", "eager", "initial_iteration", "input_output",
    "iteration", "kernels", "last_bytes", "last_steps", "layout", "naming", "net_name", "op_debug_mode",
    "overflow_number", "path", "saved_data", "signal", "statistic_category", "support_device",
}  # fmt: skip
_E2E = {
    "device_stat_precision_mode", "enable", "sample_mode", "sample_num", "save_kernel_args", "stat_calc_mode",
    "trans_flag",
}  # fmt: skip
_ASYNC = {"enable", "file_format", "op_debug_mode"}
