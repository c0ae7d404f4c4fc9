"""What `jit` and `JitConfig` may ask of the compiler, and which options of MindSpore nothing follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mycelia.engine.base import errors, ignored, log
from mycelia.engine.compile.passes.selection import AT_O0

LEVELS = ("O0", "O1", "O2")
SYNTAX = ("STRICT", "COMPATIBLE", "LAX")  # by their numbers in `config`


class _Unset(str):
    """The level of a `jit` that was given none: MindSpore's default, which asks for nothing here."""


UNSET_LEVEL = _Unset("O0")
_BACKENDS = ("", "ms_backend", "GE")  # MindSpore's compilers
MISSING = {  # option -> what does not happen
    "exec_order": "programs run in the order that needs least memory",
    "ge_options": "Ascend's compiler GE takes no part",
    "infer_boost": "inference has no kernels of its own",
    "auto_offload": "no tensor is moved out of the memory of its device",
}
_DEPRECATED = {
    "mode": "capture_mode",
    "input_signature": "dynamic",
    "hash_args": "",
    "jit_config": "jit_level, fullgraph or options",
    "compile_once": "",
}


@dataclass(frozen=True, slots=True)
class Options:
    """How one function is compiled, where it differs from the settings."""

    fullgraph: bool = False  # nothing may be left to Python
    accuracy: str = ""  # "strict", "normal" or "fast"; empty: as the setting says
    level: str = ""  # "O0", "O1" or "O2"; empty: as the setting `jit_config` says
    syntax_level: int | None = None  # one of `config.STRICT`, `COMPATIBLE`, `LAX`
    checked: bool = False  # graphs are verified after each pass
    layouts: bool = True  # images may have their channels last

    @property
    def without(self) -> frozenset[str]:
        """Stages and passes of the compiler to leave out."""
        return frozenset((*(AT_O0 if self.level == "O0" else ()), *(() if self.layouts else ("layout",))))

    def over(self, below: Options) -> Options:
        """These options, and those of `below` where these ask for nothing."""
        return Options(
            self.fullgraph or below.fullgraph,
            self.accuracy or below.accuracy,
            self.level or below.level,
            below.syntax_level if self.syntax_level is None else self.syntax_level,
            self.checked or below.checked,
            self.layouts and below.layouts,
        )


DEFAULT = Options()


def jit_options(fullgraph: bool, accuracy: str, level: str, backend: str, options: dict[str, Any]) -> Options:
    """What arguments of `jit` ask for; a warning names each option that nothing follows.

    Errors: RuntimeError for an unknown backend, TypeError and ValueError for bad values.
    """
    if not isinstance(backend, str):
        raise errors.type_error("jit", f"backend must be a str, but got {type(backend).__name__}")
    if backend not in _BACKENDS:
        raise errors.error(
            errors.MyceliaRuntimeError, "jit", f"there is no backend {backend!r}: "
            f"it must be one of {list(_BACKENDS)}",
            hint="set_context(device_target=...) chooses what runs ops",
        )  # fmt: skip
    if backend == "GE":
        ignored.tell("jit", "backend", backend, MISSING["ge_options"])
    for name in options.keys() & _DEPRECATED.keys():
        advice = f" Please use '{_DEPRECATED[name]}' instead." if _DEPRECATED[name] else ""
        log.logger(__name__).warning("For 'jit', the parameter '%s' has been deprecated.%s", name, advice)
    for name, value in options.items():
        _check_option(name, value)
        if name in MISSING:
            ignored.tell("jit", name, value, MISSING[name])
        elif name not in _DEPRECATED and name != "disable_format_transform":
            ignored.tell("jit", name, value, "jit has no such option")
    asked = "" if level is UNSET_LEVEL else level
    made = Options(fullgraph, accuracy, asked, layouts=not options.get("disable_format_transform", False))
    return made.over(options_of(options.get("jit_config")))


def _check_option(name: str, value: Any) -> None:
    for kind, known in ((bool, ("disable_format_transform",)), (dict, ("ge_options",)),
                        (str, ("exec_order", "infer_boost", "auto_offload"))):  # fmt: skip
        if name in known and not isinstance(value, kind):
            raise errors.type_error("jit", f"{name} must be {kind.__name__}, but got {type(value).__name__}")
    choices = {
        "exec_order": ("bfs", "dfs"), "infer_boost": ("on", "off"),
        "auto_offload": ("weight", "activation", "all"),
    }.get(name)  # fmt: skip
    if choices is not None and value not in choices:
        raise errors.one_of(value, choices, subject="jit", what=name)
    if name == "ge_options":
        for level in value:
            if level not in ("global", "session"):
                raise errors.one_of(level, ("global", "session"), subject="jit", what="key of ge_options")


def options_of(given: Any) -> Options:
    """What a `JitConfig`, or its dict, asks for; None asks for nothing."""
    asked: dict[str, Any] = getattr(given, "jit_config_dict", given) or {}
    syntax = asked.get("jit_syntax_level")
    return Options(
        level=asked.get("jit_level", ""),
        syntax_level=SYNTAX.index(syntax) if syntax in SYNTAX else None,
        checked=asked.get("debug_level") == "DEBUG",
    )
