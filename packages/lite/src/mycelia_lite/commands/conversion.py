"""What `mycelia-lite convert` does with its options, as texts by their names; without Typer."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mycelia_lite.commands.options import spellings
from mycelia_lite.converter import Code, ConversionError, jobs, run
from mycelia_lite.converter import explain as obstacles_of
from mycelia_lite.converter.comparison import Departure
from mycelia_lite.converter.options import READERS

_NAMES = ("fmk", "modelFile", "weightFile", "outputFile", "configFile", *READERS)


def plain(arguments: Sequence[str]) -> dict[str, str] | None:
    """Texts by name if all arguments are `--name=text` with names of options; else None."""
    names = {spelling: name for name in _NAMES for spelling in spellings(name)}
    texts = {}
    for argument in arguments:
        spelling, equals, text = argument.partition("=")
        if not equals or spelling not in names:
            return None
        texts[names[spelling]] = text
    return texts


def convert(texts: dict[str, str]) -> int:
    """Do the conversions and say so; the exit code."""
    try:
        for job in list(jobs(texts, texts.pop("configFile", ""))):
            report = run(job)
            fired = ", ".join(f"{name} {count}" for name, count in report.fusions.items() if count)
            turns = "{} Transposes before, {} after".format(*report.transposes)
            print(f"{report.path}: fused {fired or 'nothing'}; {turns}")
            for d in report.departures:
                print(f"output '{d.name}' departs by {d.greatest:.2g} from {d.engine}{_rounding(d)}")
    except ConversionError as error:
        return _failed(error.code, _reason(error))
    except OSError as error:
        return _failed(Code.ERROR, str(error))
    print("CONVERT RESULT SUCCESS:0")
    return 0


def _rounding(departure: Departure) -> str:
    if not departure.rounding:
        return ""
    return f", whose rounding alone is {departure.rounding:.2g}: it computes in float32"


def explain(texts: dict[str, str]) -> int:
    """Print what hinders the conversions; the exit code."""
    count = 0
    try:
        if "configFile" not in texts:
            texts.setdefault("outputFile", "explained")
        for job in list(jobs(texts, texts.pop("configFile", ""))):
            for obstacle in obstacles_of(job):
                count += 1
                print(f"{job.model_file}: {int(obstacle.code)} {_reason(obstacle)}")
    except ConversionError as error:
        return _failed(error.code, _reason(error))
    print(f"{count} obstacles" if count != 1 else "1 obstacle")
    return 1 if count else 0


def _failed(code: Code, reason: str) -> int:
    print(f"CONVERT RESULT FAILED:{int(code)} {reason}", file=sys.stderr)
    return 1


def _reason(error: Exception) -> str:
    """The message without the place in our sources where it showed, which helps no one here."""
    return "\n".join(line for line in str(error.args[0]).splitlines() if not line.startswith("  at "))
