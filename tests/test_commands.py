"""What is true of the command lines of all distributions, with the installed versions of typer and rich."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

import mycelia.cli
from mycelia import plugins


def command_lines() -> dict[str, typer.Typer]:
    """Name -> application, of core and of every distribution that is installed."""
    found = {point.name: point.load() for point in plugins.entry_points(plugins.CLI_GROUP)}
    return {"mycelia": mycelia.cli.app, **dict(sorted(found.items()))}


def commands(command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """A command and those below it, with the words that lead there; nothing of other distributions."""
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*words, name))


def squeezed(text: str) -> str:
    """Without what depends on the width of the window."""
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("columns", ["20", "40", "80", "250"])
@pytest.mark.parametrize("name", command_lines())
def test_help_of_every_command_says_all_that_is_written(name, columns):
    app = command_lines()[name]
    for words, command in commands(typer.main.get_command(app)):
        shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": columns})
        assert shown.exit_code == 0, f"{words}: {shown.output}{shown.exception!r}"
        text = squeezed(shown.output)
        assert squeezed(inspect.cleandoc(command.help)) in text
        for parameter in command.params:
            for part in (*parameter.opts, getattr(parameter, "help", None) or ""):
                assert squeezed(part) in text or parameter.param_type_name == "argument", (words, part)


@pytest.mark.parametrize("name", command_lines())
def test_a_mistake_is_told_in_one_line_with_its_text_as_it_is(name):
    shown = CliRunner().invoke(command_lines()[name], ["no [/such] command"])
    assert shown.exit_code == 2
    assert "No such command 'no [/such] command'" in shown.output
