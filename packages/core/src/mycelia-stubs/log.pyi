# Written by tools/gen_stubs.py.
from mycelia.engine.base.log import (
    critical as critical, debug as debug, error as error, get_level as get_level,
    get_log_config as get_log_config, info as info, logger as logger, set_level as set_level,
    setup as setup, show as show, submodule_of as submodule_of, wants as wants, warning as warning,
)

__all__ = [
    "LEVELS", "PRODUCT", "SUBMODULES", "critical", "debug", "error", "get_level", "get_log_config", "info",
    "logger", "set_level", "setup", "show", "submodule_of", "wants", "warning",
]

LEVELS: tuple
PRODUCT: str
SUBMODULES: dict
