"""The table of all settings of Mycelia: environment variables, `set_context` key, default and meaning."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from mycelia.engine.base import errors

GRAPH_MODE = 0
PYNATIVE_MODE = 1
STRICT, COMPATIBLE, LAX = 0, 1, 2  # jit_syntax_level
RELEASE, DEBUG = 0, 1  # debug_level
_MISSING = object()


class _Links:
    """What lies above the settings and is needed by them, see `connect`."""

    backend_names: Callable[[], list[str]] = staticmethod(lambda: [])
    unfollowed: Callable[[Setting, object], None] | None = None


_links = _Links()


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table.

    `parse` turns the text of an environment variable into a value, or `_MISSING` if this variable does not
    speak of it; `check` takes a value given in Python and returns it in its stored form.
    """

    key: str
    default: object
    types: tuple[type, ...]
    env: tuple[str, ...]  # first one that is set wins
    doc: str
    choices: tuple = ()
    check: Callable[[object], object] | None = None
    parse: Callable[[str], object] | None = None
    in_context: bool = True  # a key of set_context
    missing: str = ""  # what does not happen here when it is set; empty: something reads it

    @property
    def in_effect(self) -> bool:
        """Whether something reads the setting; one that nothing reads is warned of when it is set."""
        return not self.missing


def _bool(text: str) -> bool:
    return text.strip().lower() not in ("", "0", "false", "off", "no")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _range(key: str, low: int, high: int | None = None):
    def check(value):
        if value < low or (high is not None and value > high):
            expected = f"at least {low}" if high is None else f"in range [{low}, {high}]"
            raise errors.value_error(
                "set_context", f"the argument '{key}' must be {expected}, but got {value}"
            )
        return value

    return check


def _gigabytes(key: str):
    """Sizes are given as MindSpore writes them: '3.5GB'; kept in that form."""

    def check(value):
        number = value[:-2].strip() if value.upper().endswith("GB") else value.strip()
        try:
            fine = float(number) > 0
        except ValueError:
            fine = False
        if not fine:
            expected = "a positive number of gigabytes such as '3.5GB'"
            raise errors.value_error(
                "set_context", f"the argument '{key}' must be {expected}, but got {value!r}"
            )
        return value

    return check


def gigabytes(text: str) -> int:
    """'3.5GB' or '3.5' as bytes."""
    return int(float(text.upper().removesuffix("GB")) * 2**30)


def _save_graphs_level(value):
    if value not in (0, 1, 2, 3):
        raise errors.value_error("set_context", f"value for save_graphs should be 0-3 but got {value!r}")
    return int(value)


def _interval(value):
    if value < 1:
        raise errors.value_error(
            "set_context", f"'save_graphs_interval' must be at least 1, but got {value!r}"
        )
    return value


def _format(value):
    if value not in (0, 1, 2):
        raise errors.one_of(value, (0, 1, 2), subject="set_context", what="'save_graphs_format'")
    return value


def _save_graphs_from_env(text: str):
    if text in ("0", "1", "2", "3"):
        return int(text)
    return 2  # a directory: see save_graphs_path


def _save_graphs_path_from_env(text: str):
    return _MISSING if text in ("", "0", "1", "2", "3") else text


def _existing_file(value):
    if value and not os.path.isfile(value):
        raise errors.value_error("set_context", f"the 'env_config_path' file {value!r} does not exist")
    return value


def _passes(value):
    """Which names there are depends on backends and plugins: told when something is compiled."""
    if all(entry.strip()[:1] in ("", "-") for entry in value.split(",")):
        return value
    raise errors.value_error(
        "set_context",
        f"'passes' must be names with a '-' in front, such as '-fuse,-layout', but got {value!r}",
    )


def _jit_config(value):
    level = value.get("jit_level", "O0")
    if level not in ("O0", "O1", "O2"):
        raise errors.one_of(
            level, ("O0", "O1", "O2"), subject="set_context", what="jit_level of 'jit_config'"
        )
    return dict(value)


# MindSpore's names of device targets -> the backends that stand for them here.
DEVICE_ALIASES = {"gpu": "cuda", "ascend": "ascend-sim", "npu": "ascend-sim"}


def _device_target(value):
    """A target that some backend serves; CPU always is, by the reference backend if need be."""
    if value.upper() == "CPU":
        return "CPU"
    names = {"reference", *_links.backend_names()}
    if value.lower() in names or DEVICE_ALIASES.get(value.lower()) in names:
        return value
    offered = ["CPU", *sorted(names - {"cpu"})]
    raise errors.one_of(value, offered, subject="set_context", what="the argument 'device_target'")


def _s(key, default, *, doc, env=(), types=None, **more) -> Setting:
    env = (env,) if isinstance(env, str) else env
    return Setting(key, default, types or (type(default),), env, doc, **more)


def _compat(key, default, missing, **more) -> Setting:
    """A setting of MindSpore that scripts give and nothing here follows."""
    return _s(key, default, doc=f"A setting of MindSpore: {missing}.", missing=missing, **more)


SETTINGS: dict[str, Setting] = {
    s.key: s
    for s in (
        # --- how networks run
        _s("mode", PYNATIVE_MODE, env="MYCELIA_MODE", choices=(GRAPH_MODE, PYNATIVE_MODE),
           doc="`GRAPH_MODE` (0) compiles every Cell that is called, `PYNATIVE_MODE` (1) runs op by op."),
        _s("device_target", "CPU", env="MYCELIA_DEVICE_TARGET", check=_device_target,
           doc="Backend that runs ops: CPU or the name of an installed backend."),
        _s("device_id", 0, env=("MYCELIA_DEVICE_ID", "DEVICE_ID"), check=_range("device_id", 0, 4095),
           doc="Which device of the target."),
        _s("deterministic", "OFF", env="MYCELIA_DETERMINISTIC", choices=("ON", "OFF"),
           doc="'ON': results do not depend on the number of threads, at some cost in speed."),
        _s("pynative_synchronize", False, env="MYCELIA_SYNC",
           doc="Run one op at a time and report its error at once."),
        _s("max_call_depth", 1000, env="MYCELIA_MAX_CALL_DEPTH", check=_range("max_call_depth", 1),
           doc="Deepest nesting of calls that graph mode follows."),
        _s("runtime_num_threads", 0, env="MYCELIA_THREADS", check=_range("runtime_num_threads", 0, 1024),
           doc="Threads of the CPU backend; 0 = all cores."),
        _s("fallback", "log", env="MYCELIA_FALLBACK", choices=("log", "silent", "error"),
           doc="An op without a kernel on the target falls back: 'log' tells once (INFO), 'error' forbids."),
        _s("disable_jit", False, env="MYCELIA_DISABLE_JIT",
           doc="`jit` runs the Python function as it is."),
        _s("jit_syntax_level", LAX, env="MS_DEV_JIT_SYNTAX_LEVEL", choices=(STRICT, COMPATIBLE, LAX),
           doc="`STRICT` (0), `COMPATIBLE` (1) or `LAX` (2): what graph mode may leave to Python."),
        _s("isa", "", env="MYCELIA_ISA", in_context=False,
           doc="Variant of the CPU kernels: generic, avx2, avx512 or neon; empty = the best there is."),
        _s("rank", 0, env=("MYCELIA_RANK", "RANK_ID"), check=_range("rank", 0), in_context=False,
           doc="Number of this process among those that train together."),
        _s("communicator", "", env="MYCELIA_COMMUNICATOR", in_context=False,
           doc="What carries tensors between processes: `socket`, `mpi`, or a plugin's; empty = what the "
               "launcher needs."),
        _s("communication_timeout_s", 1800.0, env=("MYCELIA_COMMUNICATION_TIMEOUT_S", "HCCL_EXEC_TIMEOUT"),
           check=_range("communication_timeout_s", 0), in_context=False,
           doc="Seconds that a process waits in a collective for one that does not come; at most, and "
               "with 0, 1000000 (11 days)."),
        _s("shared_memory", True, env="MYCELIA_SHARED_MEMORY", in_context=False,
           doc="Processes of one machine hand the arrays of collectives over in shared memory (Linux)."),
        _s("job_token", "", env="MYCELIA_JOB_TOKEN", in_context=False,
           doc="What a process must know to join the others of its job; `mycelia msrun` makes one where all "
               "are on one machine."),
        _s("jit_config", {}, check=_jit_config,
           doc="Options of all `jit` calls: {'jit_level': 'O0' | 'O1' | 'O2'}."),
        _s("passes", "", env="MYCELIA_PASSES", check=_passes,
           doc="Passes of the compiler, or whole stages, to leave out: names with a '-' in front, such as "
               "`-fuse,-layout`."),
        _s("pass_off", "", env="MYCELIA_PASS_OFF", in_context=False,
           doc="Passes of the compiler to leave out, by their names: `fuse,layout`; `ALL`: all that are not "
               "needed."),
        _s("accuracy", "normal", env="MYCELIA_ACCURACY", choices=("strict", "normal", "fast"),
           doc="Algorithms that compiled programs may choose. 'strict': none that rounds worse than the "
               "eager one. 'normal': Winograd's convolutions too, whose errors stay within a tile of pixels "
               "and a pair of channels. 'fast': Strassen's products too, whose errors reach other columns. "
               "`jit` has an option of this name for one function."),
        _s("strict_accuracy", False, env="MYCELIA_STRICT_ACCURACY",
           doc="True is `accuracy='strict'`, whatever `accuracy` and the option of `jit` say."),
        _s("enable_compile_cache", False, env=("MYCELIA_COMPILE_CACHE", "MS_COMPILER_CACHE_ENABLE"),
           doc="Keep what was captured on disk, for later processes."),
        _s("compile_cache_path", ".", env=("MYCELIA_COMPILE_CACHE_PATH", "MS_COMPILER_CACHE_PATH"),
           doc="Directory whose folder `graph_cache` holds what is kept; delete the folder to clear it."),
        _s("enable_graph_kernel", False,
           doc="False, if set, switches fusion off like `passes=\"-fuse\"`."),
        _s("disable_format_transform", False,
           doc="Images keep their channels first, like `passes=\"-layout\"`."),
        _s("precompile_only", False, env="MS_DEV_PRECOMPILE_ONLY",
           doc="Compiled functions and Cells are compiled when they are called, not run: a call gives None."),
        _s("max_device_memory", "1024GB", check=_gigabytes("max_device_memory"),
           doc="The most memory that tensors may take together, those kept for reuse included; more raises "
               "MemoryError."),
        _s("inter_op_parallel_num", 0, check=_range("inter_op_parallel_num", 0),
           doc="The most ops of a program that run at the same time; 0 = as many as there are threads."),
        _s("graph_kernel_flags", "",
           doc="With `--opt_level=0` fusion is off; other flags of MindSpore change nothing."),
        _s("seed", None, env="MYCELIA_SEED", types=(int,), parse=int, in_context=False,
           doc="Seed of all random ops; see `set_seed`."),
        # --- looking inside
        _s("debug", 0, env="MYCELIA_DEBUG", check=_range("debug", 0, 4),
           doc="1 tells of fallbacks and compiles, 2 also of each op and its time (eager ones of the thread "
               "that sets it, those of programs compiled from then on), 3 of passes, 4 of rewritten "
               "functions, lowered graphs and the instructions of programs."),
        _s("check", False, env="MYCELIA_CHECK",
           doc="Verify the graph after each pass."),
        _s("check_overflow", False, env="MYCELIA_CHECK_OVERFLOW",
           doc="Look at all results for NaN and infinities, in compiled functions and in eager operators of "
               "the thread that sets it: a warning names the first operator, the count and the line."),
        _s("save_graphs", 0, env=("MYCELIA_SAVE_GRAPHS", "MS_DEV_SAVE_GRAPHS"), types=(bool, int),
           check=_save_graphs_level, parse=_save_graphs_from_env,
           doc="0 nothing, 1 main stages, 2 all passes, 3 also pictures for Graphviz. The first "
               "variable may also name a directory: level 2 into it."),
        _s("save_graphs_path", ".", env=("MYCELIA_SAVE_GRAPHS", "MS_DEV_SAVE_GRAPHS_PATH"),
           parse=_save_graphs_path_from_env,
           doc="Directory of the saved graphs."),
        _s("save_graphs_interval", 1, env=("MYCELIA_SAVE_GRAPHS_INTERVAL", "MS_DEV_DUMP_IR_INTERVAL"),
           check=_interval, doc="Of the files of saved graphs only every so many-th is written."),
        _s("save_graphs_passes", "", env=("MYCELIA_SAVE_GRAPHS_PASSES", "MS_DEV_DUMP_IR_PASSES"),
           doc="Parts of names of files, comma-separated: graphs are saved under such names alone."),
        _s("save_graphs_format", 2, env=("MYCELIA_SAVE_GRAPHS_FORMAT", "MS_DEV_DUMP_IR_FORMAT"),
           check=_format, doc="What saved graphs tell: 0 what each node reads, 1 also types and attributes, "
           "2 also the user's lines and scopes."),
        _s("print_file_path", "", env="MYCELIA_PRINT_FILE_PATH",
           doc="File that takes what `ops.Print` prints; empty = the screen."),
        _s("cache_host", "127.0.0.1", env=("MYCELIA_CACHE_HOST", "MS_CACHE_HOST"), in_context=False,
           doc="Host of the dataset cache's server, for its commands and for `DatasetCache`."),
        _s("cache_port", 50052, env=("MYCELIA_CACHE_PORT", "MS_CACHE_PORT"), parse=int,
           check=_range("cache_port", 1025, 65535), in_context=False,
           doc="Port of the dataset cache's server, for its commands and for `DatasetCache`."),
        _s("cache_dir", "", env="MYCELIA_CACHE_DIR", in_context=False,
           doc="Directory of the sockets, tokens and logs of cache servers; empty = one of the user's in the "
               "directory for temporary files."),
        _s("serving_dir", "", env="MYCELIA_SERVING_DIR", in_context=False,
           doc="Directory in which commands find running model servers; empty = one of the user's in the "
               "directory for temporary files."),
        _s("cache_token", "", env="MYCELIA_CACHE_TOKEN", in_context=False,
           doc="What a client shows to a cache server on another host; empty = none."),
        _s("cache_tls", "", env="MYCELIA_CACHE_TLS", in_context=False,
           doc="Directory with ca.pem, cert.pem and key.pem for cache servers that ask for certificates."),
        _s("env_config_path", "", env="MYCELIA_ENV_CONFIG_PATH", check=_existing_file,
           doc="JSON file that switches the run recorder on, `{'rdr': {'enable': true, 'mode': 1, 'path': "
               "'/absolute'}}`: graphs, memory plans and the last operators are written when a run fails, in "
               "mode 2 also at its end."),
        _s("rdr_enable", False, env="MS_RDR_ENABLE", in_context=False,
           doc="Whether the run recorder is on; goes before the file of `env_config_path`."),
        _s("rdr_mode", 1, env="MS_RDR_MODE", choices=(1, 2), in_context=False,
           doc="When it writes: 1 at an error, 2 also at the end."),
        _s("rdr_path", "", env="MS_RDR_PATH", in_context=False,
           doc="The absolute path below which it writes `rank_N/rdr`; empty = the working directory."),
        _s("dump_config", "", env=("MYCELIA_DUMP_CONFIG", "MINDSPORE_DUMP_CONFIG"), in_context=False,
           doc="JSON file that switches the data dump on; read before the first function is compiled."),
        _s("diagnostic_data_path", "", env=("MYCELIA_DIAGNOSTIC_DATA_PATH", "MS_DIAGNOSTIC_DATA_PATH"),
           in_context=False,
           doc="The folder in whose `debug_dump` a data dump lies whose configuration names no path."),
        _s("dump_ignore_useless_output", True, env="MINDSPORE_DUMP_IGNORE_USELESS_OUTPUT", in_context=False,
           doc="Whether a data dump leaves out tensors without elements."),
        _s("debugger", False, env=("MYCELIA_DEBUGGER", "ENABLE_MS_DEBUGGER"), in_context=False,
           doc="Whether the process lets itself be debugged by the service that the next two name."),
        _s("debugger_host", "127.0.0.1", env=("MYCELIA_DEBUGGER_HOST", "MS_DEBUGGER_HOST"), in_context=False,
           doc="Host of the debugger's service."),
        _s("debugger_port", 50051, env=("MYCELIA_DEBUGGER_PORT", "MS_DEBUGGER_PORT"), parse=int,
           check=_range("debugger_port", 1, 65535), in_context=False,
           doc="Port of the debugger's service, its `--debugger-port`."),
        _s("debugger_partial_mem", False, env=("MYCELIA_DEBUGGER_PARTIAL_MEM", "MS_DEBUGGER_PARTIAL_MEM"),
           in_context=False,
           doc="Whether the debugger keeps Parameters and what it was asked for, nothing else."),
        _s("debugger_steps", 5, env="MYCELIA_DEBUGGER_STEPS", parse=int,
           check=_range("debugger_steps", 1, 100_000), in_context=False,
           doc="How many of the last steps the debugger keeps; 1 leaves nothing to compare with."),
        _s("debugger_memory", 1024, env="MYCELIA_DEBUGGER_MEMORY", parse=int,
           check=_range("debugger_memory", 1, 2**31 - 1), in_context=False,
           doc="How many MB of values the debugger keeps at most; older steps go first."),
        _s("debugger_lost", "continue", env="MYCELIA_DEBUGGER_LOST", choices=("continue", "stop"),
           in_context=False,
           doc="What a training does whose debugger's service is gone or does not answer."),
        _s("debugger_timeout", 15, env="MYCELIA_DEBUGGER_TIMEOUT", parse=int,
           check=_range("debugger_timeout", 1, 3600), in_context=False,
           doc="Seconds without a sign of life after which the service counts as gone."),
        _s("debugger_token", "", env="MYCELIA_DEBUGGER_TOKEN", in_context=False,
           doc="What a training shows to a service that was started with `--token`."),
        _s("debugger_recommended", "", env="MYCELIA_DEBUGGER_RECOMMENDED", in_context=False,
           doc="Other numbers of recommended watchpoints, such as "
               "`weight_change_too_large.abs_mean_update_ratio_gt=0.5`, with blanks or commas between."),
        _s("precision", "", env="MYCELIA_PRECISION", in_context=False,
           choices=("", "dump", "overflow", "fusion_off", "passes", "program", "recorded", "random"),
           doc="What the process collects for `mycelia-precision`, which sets this for the scripts it runs."),
        _s("precision_steps", "0", env="MYCELIA_PRECISION_STEPS", in_context=False,
           doc="Iterations that are collected then: `all`, or numbers and ranges, `0|5-8`."),
        _s("precision_path", "", env="MYCELIA_PRECISION_PATH", in_context=False,
           doc="The folder of what is collected; empty = `precision_data` in the working directory."),
        _s("check_bprop", False,
           doc="Check shapes and dtypes that a Cell's `bprop` returns."),
        _s("debug_level", RELEASE, choices=(RELEASE, DEBUG),
           doc="`DEBUG` (1) verifies the graph after each pass, as `check` does; `RELEASE` (0) does not."),
        _s("reserve_class_name_in_scope", True,
           doc="Scopes of Cells name their classes: `Default/conv1-Conv2d`, else `Default/conv1`."),
        # --- plugins
        _s("plugins", None, env="MYCELIA_PLUGINS", types=(tuple,), parse=_names, in_context=False,
           doc="Comma-separated names of the plugins to load; unset = all that are installed."),
        _s("trace_plugins", False, env="MYCELIA_TRACE_PLUGINS", in_context=False,
           doc="Print each hook call and its results."),
        _s("strict_plugins", False, env="MYCELIA_STRICT_PLUGINS", in_context=False,
           doc="A plugin that fails to load raises instead of being skipped."),
        # --- logging, read by mycelia.engine.base.log
        _s("log_level", "2", env=("MYCELIA_LOG_v", "GLOG_v"), in_context=False,
           doc="0 DEBUG, 1 INFO, 2 WARNING, 3 ERROR, 4 CRITICAL."),
        _s("submodule_log_level", "", in_context=False, env=("MYCELIA_SUBMODULE_LOG_v", "MS_SUBMODULE_LOG_v"),
           doc="Levels of parts, over the general one: `{CORE:0,PARALLEL:3}`."),
        _s("log_format", "text", env="MYCELIA_LOG_FORMAT", choices=("text", "json"), in_context=False,
           doc="'text', or 'json' for one JSON object a line."),
        _s("log_to_stderr", "1", env="GLOG_logtostderr", choices=("0", "1"), in_context=False,
           doc="1 screen, 0 files."),
        _s("log_dir", "", env="GLOG_log_dir", in_context=False,
           doc="Directory of log files."),
        _s("log_stderr_threshold", "2", env="GLOG_stderrthreshold", in_context=False,
           doc="Level that reaches the screen when files are written."),
        _s("log_max_bytes", 52428800, env="logger_maxBytes", in_context=False,
           doc="Size in bytes at which the file of all messages is rotated."),
        _s("log_backup_count", 30, env="logger_backupCount", in_context=False,
           doc="How many rotated files of all messages are kept."),
        _s("log_max_size", 50, env="GLOG_max_log_size", check=_range("GLOG_max_log_size", 0),
           in_context=False,
           doc="Size in MB after which a file of one level is followed by a new one; 0: never."),
        _s("log_file_mode", "0640", env="GLOG_logfile_mode", in_context=False,
           doc="Permissions of log files, an octal number."),
        _s("verbose_log", "", env=("MYCELIA_VLOG_v", "VLOG_v"), in_context=False,
           doc="Tags of verbose messages: `n`, `(a,b)`, `(a,)` or `(,b)`; 20000 lists those that exist."),
        _s("ascend_config", {},
           doc="Settings that a backend for Ascend follows: `precision_mode`, the dtypes of products."),
        # --- accepted so that scripts run; a warning says what does not happen
        _compat("memory_optimize_level", "O0", "memory of programs is planned alike at each level",
                choices=("O0", "O1")),
        _compat("variable_memory_max_size", "30GB", "Parameters have no memory of their own to limit",
                check=_gigabytes("variable_memory_max_size")),
        _compat("mempool_block_size", "1GB", "memory is taken by the size of each tensor, not in blocks",
                check=_gigabytes("mempool_block_size")),
        _compat("memory_offload", "OFF", "no tensor is moved out of the memory of its device",
                choices=("ON", "OFF")),
        _compat("op_timeout", 900, "no op is given up after a time", check=_range("op_timeout", 0)),
        _compat("exec_order", "bfs", "programs run in the order that needs least memory",
                choices=("bfs", "dfs", "gpto")),
        _compat("support_binary", False, "graph mode reads the sources of functions"),
        _compat("enable_reduce_precision", True, "ops never reduce the precision that was asked for"),
        _compat("aoe_tune_mode", "", "kernels are not tuned"),
        _compat("aoe_config", {}, "kernels are not tuned"),
        _compat("enable_profiling", False, "nothing is profiled, `mycelia.Profiler` does that"),
        _compat("profiling_options", "", "nothing is profiled, `mycelia.Profiler` does that"),
        _compat("grad_for_scalar", False, "numbers have no gradient, tensors have"),
        _compat("gpu_config", {}, "no GPU runs ops"),
    )
}  # fmt: skip
