"""The `mycelia` command: own commands, sub-commands of other distributions, MindSpore scripts as they are."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from mycelia import config
from mycelia.cli import app


def mycelia(*arguments: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "mycelia.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_help_lists_own_commands():
    output = CliRunner().invoke(app, ["--help"]).output
    for command in ("plugins", "env", "info", "run"):
        assert f"\n  {command} " in output


def test_plugins_lists_core_first():
    result = CliRunner().invoke(app, ["plugins"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("core ")


def test_env_does_not_show_tokens():
    with config.context(job_token="of-this-job"):
        output = CliRunner().invoke(app, ["env"]).output
    assert "of-this-job" not in output and "job_token = (not shown)" in output


def test_env_lists_every_setting_with_its_variables():
    output = CliRunner().invoke(app, ["env"]).output
    for setting in config.SETTINGS.values():
        assert f"{setting.key} = " in output
        assert all(name in output for name in setting.env)


def test_unknown_command_is_an_error():
    result = mycelia("nonsense")
    assert result.returncode == 2
    assert "No such command 'nonsense'" in result.stderr


def test_help_imports_no_other_package(tmp_path):
    info = tmp_path / "other-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[mycelia.cli]\nother = other_cli:app\n")
    (tmp_path / "other_cli.py").write_text(
        "print('imported')\nimport typer\napp = typer.Typer()\n@app.callback()\ndef root(): pass\n"
        "@app.command()\ndef hello(): print('hello from other')\n"
    )
    import os

    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    listing = mycelia("--help", env=env)
    assert "other" in listing.stdout and "imported" not in listing.stdout
    assert mycelia("other", "hello", env=env).stdout.split("\n")[:2] == ["imported", "hello from other"]


@pytest.fixture
def script(tmp_path):
    def write(text: str):
        file = tmp_path / "train.py"
        file.write_text(text)
        return str(file)

    return write


def test_run_lets_mindspore_mean_mycelia(script):
    file = script(
        "import sys\n"
        "import mindspore as ms\n"
        "import mindspore.context\n"
        "from mindspore import context, set_context\n"
        "import mycelia\n"
        "assert ms is mycelia and mindspore.context is mycelia.context\n"
        "set_context(mode=ms.GRAPH_MODE)\n"
        "specs = mycelia.__spec__.name, ms.context.__spec__.name\n"
        "print(context.get_context('mode'), __name__, sys.argv[1:], *specs)\n"
    )
    result = mycelia("run", file, "--epochs", "3")
    expected = "0 __main__ ['--epochs', '3'] mycelia mycelia.faces.context"
    assert result.stdout.strip() == expected, result.stderr


def test_run_says_which_module_is_missing(script):
    result = mycelia("run", script("import mindspore.no_such_part"))
    assert result.returncode != 0
    assert "No module named 'mindspore.no_such_part'" in result.stderr


def test_mindspore_does_not_resolve_outside_of_run():
    code = "import mycelia, importlib.util\nprint(importlib.util.find_spec('mindspore') is None)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "True"


def test_run_shows_the_traceback_of_the_script_alone(script):
    result = mycelia("run", script("def f():\n    raise KeyError('lost')\nprint('before')\nf()\n"))
    assert (result.returncode, result.stdout) == (1, "before\n")
    lines = result.stderr.splitlines()
    assert lines[0].startswith("Traceback") and "train.py" in lines[1] and lines[-1] == "KeyError: 'lost'"


def test_run_passes_the_status_and_options_of_the_script_on(script):
    result = mycelia("run", script("import sys\nprint(sys.argv[1:])\nsys.exit(3)\n"), "--help", "-x")
    assert (result.returncode, result.stdout) == (3, "['--help', '-x']\n")
