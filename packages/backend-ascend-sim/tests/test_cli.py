"""The command line of the Ascend simulator."""

from __future__ import annotations

from importlib.metadata import version

from typer.testing import CliRunner

from mycelia_backend_ascend_sim.cli import app


def test_version_command_prints_the_installed_version():
    result = CliRunner().invoke(app, ["version"])
    assert result.exit_code == 0, result.output
    assert result.output.strip() == version("mycelia-backend-ascend-sim")


def test_profile_runs_a_script_and_writes_files(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(
        "import sys, mycelia as ms\n"
        "x = ms.ops.ones((32, 32), ms.float16)\n"
        "print((x @ x)[0, 0], sys.argv[1])\n"
    )
    result = CliRunner().invoke(app, ["profile", "--out", str(tmp_path / "out"), str(script), "again"])
    assert result.exit_code == 0, result.output
    assert "32.0 again" in result.output and "not measured" in result.output and "mat_mul" in result.output
    assert (tmp_path / "out" / "aicore_intermediate_0_type.csv").exists()


def test_profile_refuses_an_unknown_chip(tmp_path):
    script = tmp_path / "job.py"
    script.write_text("raise SystemExit('not run')")
    result = CliRunner().invoke(app, ["profile", "--chip", "999", str(script)])
    assert result.exit_code == 2 and "999" in result.output
