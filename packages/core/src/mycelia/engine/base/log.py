"""Logging in MindSpore's levels and line format, on Python's `logging`.

Levels: 0 DEBUG, 1 INFO, 2 WARNING (default), 3 ERROR, 4 CRITICAL, from MYCELIA_LOG_v or GLOG_v; parts of the
system have names (`CORE`, `PARALLEL`, `LITE`, ...) whose level MYCELIA_SUBMODULE_LOG_v or MS_SUBMODULE_LOG_v
sets. A module logs with `log.logger(__name__).info(...)`; scripts may call `log.warning("...")` directly.
With GLOG_logtostderr=0 files take the messages: one with all of them, and one of each level (`log_files`).
What a tag of `log_verbose` stands for is told when VLOG_v asks for it, whatever the level.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time

from mycelia.engine.base import errors, log_verbose, settings

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

# Part of the system -> the loggers whose level it sets. MindSpore's names where there is such a part here.
SUBMODULES: dict[str, tuple[str, ...]] = {
    "ME": ("mycelia",),
    "CORE": ("mycelia.engine.ir", "mycelia.engine.ops", "mycelia.engine.dispatch"),
    "COMMON": ("mycelia.engine.tensors.tensor", "mycelia.engine.base"),
    "KERNEL": ("mycelia.engine.backends", "mycelia_backend_cpu", "mycelia_backend_cuda"),
    "DEVICE": ("mycelia_backend_cpu", "mycelia_backend_cuda"),
    "PARSER": ("mycelia.engine.capture",),
    "ANALYZER": ("mycelia.engine.ops.infer", "mycelia.engine.ir.verify"),
    "OPTIMIZER": ("mycelia.engine.compile.passes",),
    "PRE_ACT": ("mycelia.engine.compile.placement",),
    "PIPELINE": ("mycelia.engine.compile",),
    "SESSION": ("mycelia.engine.compile.executable",),
    "VM": ("mycelia.engine.compile.executable",),
    "PYNATIVE": ("mycelia.engine.autodiff",),
    "EXPRESS": ("mycelia.io",),
    "MD": ("mycelia.dataset",),
    "DEBUG": ("mycelia.debug", "mycelia.engine.observing", "mycelia.engine.ops.control_flow.debug"),
    "PROFILER": ("mycelia.profiler",),
    "PARALLEL": ("mycelia.parallel",),
    "UTILS": ("mycelia.engine.base.plugins",),
    "LITE": ("mycelia_lite",),
    "SERVING": ("mycelia_serving",),
    "CACHE": ("mycelia_cache",),
    "INSIGHT": ("mycelia_insight",),
    "SIM": ("mycelia_backend_ascend_sim",),
    "GE_ADPT": ("mycelia_backend_ascend_sim",),  # MindSpore's name for what hands graphs to Ascend
}
_ROOTS = ("mycelia", *sorted({n for names in SUBMODULES.values() for n in names if n.startswith("mycelia_")}))

_SETTINGS = (
    "log_format", "log_level", "log_to_stderr", "log_stderr_threshold", "submodule_log_level", "log_dir",
    "log_max_bytes", "log_backup_count", "log_max_size", "log_file_mode", "verbose_log",
)  # fmt: skip
#: The logger of scripts: None until the first message, and again for one who changed the settings.
GLOBAL_LOGGER: logging.Logger | None = None
PRODUCT = "mycelia"  # how log files are called
_wanted_tags: frozenset[int] = frozenset()  # of `log_verbose`
_lock = threading.RLock()


class _Formatter(logging.Formatter):
    """`[WARNING] ME(pid:thread,process):2026-11-21-07:21:45.377.798 [file:line] text`."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        stamp = time.strftime("%Y-%m-%d-%H:%M:%S", time.localtime(record.created))
        micro = int(record.created * 1e6) % 1_000_000
        part = submodule_of(record.name)
        where = f"{_short(record.pathname)}:{record.lineno}"
        return (
            f"{_rank_prefix()}[{record.levelname}] {part}({record.process}:{record.thread},"
            f"{record.processName}):{stamp}.{micro // 1000:03d}.{micro % 1000:03d} [{where}] {text}"
        )


class _JsonFormatter(logging.Formatter):
    """One JSON object a line, for programs that collect logs."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "rank": settings.get("rank"),
            "part": submodule_of(record.name),
            "logger": record.name,
            "process": record.process,
            "thread": record.thread,
            "where": f"{_short(record.pathname)}:{record.lineno}",
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def _rank_prefix() -> str:
    """What tells the processes of a training apart where their lines meet; empty where there is one."""
    return f"[rank {settings.get('rank')}]" if settings.is_set("rank") else ""


class _Stderr(logging.StreamHandler):
    """Writes to whatever sys.stderr is at the moment, so that redirections made later are honored."""

    def __init__(self):
        logging.Handler.__init__(self)

    @property
    def stream(self):
        return sys.stderr


def _short(path: str) -> str:
    """Paths inside a package begin at the package: mycelia/engine/ops/define.py."""
    parts = path.replace(os.sep, "/").split("/")
    for i in range(len(parts) - 2, -1, -1):
        if parts[i].startswith("mycelia") and parts[i] in _ROOTS:
            return "/".join(parts[i:])
    return path


def submodule_of(name: str) -> str:
    """The part of the system that a logger belongs to: the one with the longest matching prefix."""
    best, length = "ME", -1
    for part, prefixes in SUBMODULES.items():
        for prefix in prefixes:
            if (name == prefix or name.startswith(prefix + ".")) and len(prefix) > length:
                best, length = part, len(prefix)
    return best


def _level(text: str, name: str) -> int:
    if text not in ("0", "1", "2", "3", "4"):
        raise errors.value_error(
            name, f"the level must be a number from 0 (DEBUG) to 4 (CRITICAL), but got {text!r}"
        )
    return (int(text) + 1) * 10


def _parts(text: str) -> dict[str, int]:
    """`{SUB1:LV,SUB2:LV}` -> logging levels; entries without a level are ignored, unknown parts warned of."""
    levels = {}
    for item in text.strip().strip("{}").split(","):
        part, _, level = (piece.strip() for piece in item.partition(":"))
        if not part or not level:
            continue
        if part not in SUBMODULES:
            logging.getLogger("mycelia").warning(
                "log level of unknown part %r ignored; parts are: %s", part, ", ".join(SUBMODULES)
            )
            continue
        levels[part] = _level(level, "MYCELIA_SUBMODULE_LOG_v")
    return levels


def setup() -> None:
    """Attach handlers and levels as the settings say; done once, by the first message."""
    global GLOBAL_LOGGER, _wanted_tags
    if GLOBAL_LOGGER is not None:
        return
    with _lock:
        if GLOBAL_LOGGER is not None:
            return
        settings.read_again(*_SETTINGS)
        formatter = _JsonFormatter() if settings.get("log_format") == "json" else _Formatter()
        level = _level(settings.get("log_level"), "GLOG_v")
        handlers: list[logging.Handler] = [_Stderr()]
        if settings.get("log_to_stderr") == "0":
            handlers[0].setLevel(_level(settings.get("log_stderr_threshold"), "GLOG_stderrthreshold"))
            handlers += _file_handlers()
        for handler in handlers:
            handler.setFormatter(formatter)
        for root in _ROOTS:
            logger = logging.getLogger(root)
            logger.propagate = False
            logger.handlers[:] = handlers
        _levels.general, _levels.of_parts = level, _parts(settings.get("submodule_log_level"))
        _levels.apply()
        _wanted_tags = log_verbose.chosen(settings.get("verbose_log"))
        GLOBAL_LOGGER = logging.getLogger("mycelia")
        if log_verbose.LIST in _wanted_tags:
            for line in log_verbose.listing():
                show(__name__, line, log_verbose.LIST)


def _file_handlers() -> list[logging.Handler]:
    """The file of all messages, `mycelia.log.{process}`, and those by level."""
    from logging.handlers import RotatingFileHandler

    from mycelia.engine.base.log_files import SeverityFiles

    directory = settings.get("log_dir")
    if not directory:
        raise errors.value_error(
            "GLOG_log_dir", "GLOG_logtostderr is 0, so a directory for log files must be set"
        )
    directory = _rank_folder(directory)
    try:
        mode = int(settings.get("log_file_mode"), 8)
    except ValueError:
        raise errors.value_error(
            "GLOG_logfile_mode",
            f"permissions are an octal number such as 0640, but got {settings.get('log_file_mode')!r}",
        ) from None

    class Rotating(RotatingFileHandler):
        """Each file that follows has the permissions, too."""

        def _open(self):
            file = super()._open()
            os.chmod(self.baseFilename, mode)
            return file

    os.makedirs(directory, exist_ok=True)
    everything = Rotating(
        os.path.join(directory, f"{PRODUCT}.log.{os.getpid()}"),
        maxBytes=settings.get("log_max_bytes"),
        backupCount=settings.get("log_backup_count"),
        encoding="utf-8",
        errors="backslashreplace",
    )
    return [everything, SeverityFiles(directory, PRODUCT, settings.get("log_max_size") << 20, mode)]


def _rank_folder(directory: str) -> str:
    return os.path.join(directory, f"rank_{settings.get('rank')}", "logs")


class _Levels:
    """The level of all, and of parts that have one of their own: what lies below a logger of such a part and
    belongs to another part keeps the level of all.
    """

    def __init__(self) -> None:
        self.general = logging.WARNING
        self.of_parts: dict[str, int] = {}

    def apply(self) -> None:
        own: dict[str, int] = {}  # loggers of parts with a level; of two parts with one logger the lower one
        for part, level in self.of_parts.items():
            for name in SUBMODULES[part]:
                own[name] = min(level, own.get(name, level))
        for name in {*_ROOTS, *(name for names in SUBMODULES.values() for name in names)}:
            is_below = any(name.startswith(f"{above}.") for above in own)
            inherited = self.general if is_below or name in _ROOTS else logging.NOTSET
            logging.getLogger(name).setLevel(own.get(name, inherited))


_levels = _Levels()


def logger(name: str = "mycelia") -> logging.Logger:
    """The logger of a module; `name` is its `__name__`."""
    setup()
    return logging.getLogger(name)


def set_level(level: int | str, part: str | None = None) -> None:
    """Change the level while running: 0..4 or its name, for everything or for one part such as 'PARALLEL'."""
    text = str(LEVELS.index(level.upper())) if str(level).upper() in LEVELS else str(level)
    value = _level(text, "set_level")
    setup()
    if part is None:
        _levels.general = value
    elif part in SUBMODULES:
        _levels.of_parts[part] = value
    else:
        raise errors.one_of(part, SUBMODULES, subject="set_level", what="part")
    _levels.apply()


def get_level() -> str:
    """The general level as MindSpore gives it: '0' .. '4'."""
    setup()
    return str(_levels.general // 10 - 1)


def get_log_config() -> dict[str, str | int]:
    """The log settings in force, under their environment names."""
    found = {"GLOG_v": get_level(), "GLOG_logtostderr": settings.get("log_to_stderr")}
    if settings.get("log_to_stderr") == "0":
        found["GLOG_log_dir"] = _rank_folder(settings.get("log_dir"))
        found["logger_maxBytes"] = settings.get("log_max_bytes")
        found["logger_backupCount"] = settings.get("log_backup_count")
        found["GLOG_stderrthreshold"] = settings.get("log_stderr_threshold")
    return found


def wants(tag: int, debug: int | None = None) -> bool:
    """Whether messages of a tag of `log_verbose` are asked for: by VLOG_v, or by a setting `debug` of at
    least the number `debug`.
    """
    if debug is not None and settings.get("debug") >= debug:
        return True
    if GLOBAL_LOGGER is None:
        if not settings.get("verbose_log"):  # nothing is set up for those who ask for nothing
            return False
        setup()
    return tag in _wanted_tags


def show(name: str, text: str, tag: int = 0) -> None:
    """Log what was asked for, whatever the level in force: at level INFO, or as a message of `tag`.

    `name`: a module's `__name__`.
    """
    part = logger(name)
    record = part.makeRecord(name, logging.INFO, *_caller(), text, (), None)
    if tag in _wanted_tags:
        record.levelname = f"V{tag}"
    part.handle(record)


def _caller() -> tuple[str, int]:
    frame = sys._getframe(2)
    return frame.f_code.co_filename, frame.f_lineno


def debug(msg, *args, **kwargs) -> None:
    """Log for developers."""
    logger().debug(msg, *args, stacklevel=2, **kwargs)


def info(msg, *args, **kwargs) -> None:
    """Log what goes as expected."""
    logger().info(msg, *args, stacklevel=2, **kwargs)


def warning(msg, *args, **kwargs) -> None:
    """Log what may need attention."""
    logger().warning(msg, *args, stacklevel=2, **kwargs)


def error(msg, *args, **kwargs) -> None:
    """Log a failure of one action."""
    logger().error(msg, *args, stacklevel=2, **kwargs)


def critical(msg, *args, **kwargs) -> None:
    """Log a failure that ends the program."""
    logger().critical(msg, *args, stacklevel=2, **kwargs)
