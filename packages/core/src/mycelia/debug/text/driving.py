"""Commands that make something run: an operator again, or as a script; and to a running training: to a node,
pause, end, edit a weight.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mycelia.debug.text.commands import command
from mycelia.debug.text.moving import tell
from mycelia.debug.text.place import Place
from mycelia.debug.text.screen import Screen
from mycelia.debug.text.tensors import save
from mycelia.engine.base import errors


@command("node", "[NODE]", takes="node", most=1)
def _node(place: Place, screen: Screen, words: list[str]) -> None:
    """Run the training to the end of an operator, of the next one if none is named."""
    place.source.to_node(place.rank, place.node(words[0]) if words else None)
    tell(place, screen)


@command("pause", most=0)
def _pause(place: Place, screen: Screen, words: list[str]) -> None:
    """A training that runs waits after the present step."""
    place.source.pause(place.rank)
    tell(place, screen)


@command("terminate", most=0)
def _terminate(place: Place, screen: Screen, words: list[str]) -> None:
    """End the training after the present step."""
    place.source.terminate(place.rank)
    screen.line(place.source.where())


@command("rerun", "NODE [SLOT=VALUE | SLOT[INDEX]=VALUE ...]", takes="node", least=1)
def _rerun(place: Place, screen: Screen, words: list[str]) -> None:
    """Run an operator of this step once more, on inputs that are edited: all of one, or the elements at an
    index such as [0,2:5]. The outputs beside those that were recorded, at most the first 100 rows.
    """
    edits = []
    for word in words[1:]:
        match = re.fullmatch(r"(\d{1,6})(\[.*?\])?=(.+)", word, re.DOTALL)
        if match is None:
            raise errors.value_error("rerun", f"an edit is SLOT=VALUE or SLOT[INDEX]=VALUE, but is {word!r}")
        edits.append({"slot": int(match[1]), "index": match[2] or "", "value": _value("rerun", match[3])})
    node = place.node(words[0])
    screen.line(f"{node.name}  {place.when()}", "bold")
    for output in place.source.rerun(node, edits):
        count = output["different"]
        how = "not to be compared with" if count is None else f"{count} elements are others than"
        screen.line(f"  output {output['slot']}: {output['dtype']} {output['shape']}, {how} recorded")
        screen.line(f"  made      {output['value']}")
        screen.line(f"  recorded  {output['recorded']}")


@command("script", "NODE FILE.py", takes="node", least=2, most=2)
def _script(place: Place, screen: Screen, words: list[str]) -> None:
    """Write an operator of this step as a script that runs alone, on the same inputs."""
    target, node = Path(words[1]).expanduser(), place.node(words[0])
    if target.suffix != ".py":
        raise errors.value_error("script", f"FILE must end in .py, but is {words[1]!r}")
    save(target, place.source.script(node).encode())
    screen.line(f"{target}: {node.name}, {place.when()}")


@command("set", "WEIGHT [INDEX] VALUE", takes="node", least=2, most=3)
def _set(place: Place, screen: Screen, words: list[str]) -> None:
    """Edit a Parameter of the training, all of it or at an index such as [0,2:5], from its next step on."""
    node, index = place.node(words[0]), words[1] if len(words) == 3 else ""
    place.source.edit(node, index, _value("set", words[-1]))
    screen.line(f"{node.name}{index} is {words[-1]} from the next step on")


@command("dump", most=0)
def _dump(place: Place, screen: Screen, words: list[str]) -> None:
    """Let the training write this step as a data dump, on its machine, below MS_DIAGNOSTIC_DATA_PATH or
    where it runs.
    """
    folder, step = place.source.dump(place.rank)
    screen.line(f"step {step} is in {folder}")


def _value(command: str, text: str) -> Any:
    """A number, or nested lists of numbers."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise errors.value_error(
            command, f"VALUE must be a number, or lists such as [[1, 2], [3, 4]], but is {text!r}"
        ) from None
