"""Where the tool keeps what it collects, and how it runs a script with collection on.

``precision_data/`` (or the setting `precision_path`): ``npu/debug_{n}/dump`` of the run under test,
``ref/dump`` of the trusted one, ``overflow/dump``, ``temp/vector_compare/{time}/result_*.csv``.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from mycelia.engine.base import config, errors


def working_folder() -> Path:
    """The folder of the setting `precision_path`, `precision_data` if nothing is said."""
    return Path(config.get("precision_path") or "precision_data")


def _numbered() -> list[Path]:
    found = [p for p in (working_folder() / "npu").glob("debug_*") if p.name[6:].isdigit()]
    return sorted(found, key=lambda p: int(p.name[6:]))


def dump_folder() -> Path:
    """The newest dump of the run under test.  Errors: ValueError if there is none."""
    found = [p / "dump" for p in _numbered() if (p / "dump").is_dir()]
    if not found:
        raise errors.value_error(
            "dump", f"{working_folder()} has no dump: collect one by `mycelia-precision sim_dump 'COMMAND'`"
        )
    return found[-1]


def reference_folder() -> Path | None:
    """The dump of the trusted run, None if there is none."""
    found = working_folder() / "ref" / "dump"
    return found if found.is_dir() else None


def overflow_folder() -> Path:
    """Where operators whose outputs are not finite are dumped."""
    return working_folder() / "overflow" / "dump"


def is_clean(folder: Path) -> bool:
    """Whether what was collected there is a run that had nothing to write."""
    return any(folder.glob("rank_*/.dump_metadata")) and not any(folder.glob("rank_*/[!.]*/*/[0-9]*/*.npy*"))


def newest_table() -> Path:
    """The CSV of the last comparison.  Errors: ValueError if there is none."""
    found = (working_folder() / "temp" / "vector_compare").glob("*/result_*.csv")
    newest = max(found, key=lambda p: (p.parent.name, p.name), default=None)
    if newest is None:
        raise errors.value_error("vcs", f"{working_folder()} has no table of a comparison: run `vc` first")
    return newest


def pass_names() -> list[str]:
    """All passes of the compiler for the present target, in order; each can be switched off by this name."""
    from mycelia.engine.compile.passes import pipeline
    from mycelia.engine.compile.passes.pass_manager import STAGES

    return list(dict.fromkeys(step.name for stage in STAGES for step in pipeline(stage)))


def environment(action: str, folder: Path, steps: str = "0") -> dict[str, str]:
    """The variables of a process that collects into `folder`."""
    return {
        **os.environ,
        "MYCELIA_PRECISION": action,
        "MYCELIA_PRECISION_STEPS": steps,
        "MYCELIA_PRECISION_PATH": os.fspath(folder.absolute()),
    }


def collect_command(action: str, command: str, steps: str, fused: bool = False) -> int:
    """The exit status of `command`, run with collection on; what was there of this kind is kept, numbered.

    `fused`: what compiled programs make as they run, instead of the operators that the code has.
    """
    base, variables = working_folder(), {}
    if action == "dump":
        taken = _numbered()
        number = int(taken[-1].name[6:]) + 1 if taken else 0
        folder = base / "npu" / f"debug_{number}" / "dump"
    elif action == "overflow":
        folder = _fresh(base / "overflow" / "dump")
    else:
        folder = _fresh(base / "ref" / "dump")
        if action == "reference_fusion_off":
            variables["MYCELIA_PASS_OFF"] = "ALL"
        action = "dump"
    if fused:
        action = "program"
    return run_command(command, environment(action, folder, steps) | variables)


def _fresh(folder: Path) -> Path:
    """`folder`, after what lies there got a number."""
    if folder.is_dir():
        number = 0
        while (kept := folder.with_name(f"{folder.name}_{number}")).exists():
            number += 1
        folder.rename(kept)
    return folder


def run_command(command: str, environment: Mapping[str, str], quiet: bool = False) -> int:
    """The exit status of a command without a shell.  Errors: ValueError for one that cannot be started."""
    try:
        words = shlex.split(command)
        output = subprocess.DEVNULL if quiet else None
        return subprocess.call(words, env=dict(environment), stdout=output, stderr=output)
    except (OSError, ValueError, IndexError) as cause:
        raise errors.value_error("command", f"{command!r} cannot be run: {cause}") from None
