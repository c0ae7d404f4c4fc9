"""Log lines, levels and files; each case in a process of its own, as settings of the log are read once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

SCRIPT = """
from mycelia import log
part = log.logger("mycelia.parallel.mpi")
log.debug("d"); log.info("i"); log.warning("w %d", 7); log.error("e"); log.critical("c")
part.info("from parallel")
"""


def run(script=SCRIPT, **env) -> str:
    clean = {k: v for k, v in os.environ.items() if "log" not in k.lower()}
    result = subprocess.run(
        [sys.executable, "-c", script], env={**clean, **env}, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stderr


def messages(text: str) -> list[str]:
    return [line.rsplit("] ", 1)[1] for line in text.splitlines()]


def test_line_has_mindspores_form():
    line = run().splitlines()[0]
    time = r"\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3}"
    form = rf"\[WARNING\] ME\(\d+:\d+,MainProcess\):{time} \[<string>:4\] w 7"
    assert re.fullmatch(form, line), line


@pytest.mark.parametrize("name", ["GLOG_v", "MYCELIA_LOG_v"])
@pytest.mark.parametrize(
    "level, shown", [("0", "diwec"), ("1", "iwec"), ("2", "wec"), ("3", "ec"), ("4", "c")]
)
def test_level_is_the_lowest_that_is_shown(name, level, shown):
    text = [m[0] for m in messages(run(**{name: level})) if m != "from parallel"]
    assert "".join(text) == shown


@pytest.mark.parametrize("name", ["MS_SUBMODULE_LOG_v", "MYCELIA_SUBMODULE_LOG_v"])
def test_a_part_has_its_own_level(name):
    text = run(**{name: "{PARALLEL:1,ME:}", "GLOG_v": "4"})
    assert messages(text) == ["c", "from parallel"]
    assert text.splitlines()[1].startswith("[INFO] PARALLEL(")


def test_unknown_part_is_warned_of_not_an_error():
    assert "log level of unknown part 'NOBODY' ignored" in run(MYCELIA_SUBMODULE_LOG_v="{NOBODY:1}")


def test_bad_level_names_the_variable():
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**os.environ, "GLOG_v": "high"}, capture_output=True, text=True
    )
    assert result.returncode != 0
    assert (
        "GLOG_v: the level must be a number from 0 (DEBUG) to 4 (CRITICAL), but got 'high'" in result.stderr
    )


def test_files_take_the_messages_and_the_screen_those_above_its_threshold(tmp_path):
    text = run(GLOG_v="1", GLOG_logtostderr="0", GLOG_log_dir=str(tmp_path), GLOG_stderrthreshold="4")
    assert messages(text) == ["c"]
    (file,) = tmp_path.glob("rank_0/logs/mycelia.log.*")
    assert messages(file.read_text()) == ["i", "w 7", "e", "c", "from parallel"]


def test_files_without_directory_are_an_error():
    script = "from mycelia import log\ntry:\n log.info('x')\nexcept ValueError as e: print(e)"
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "GLOG_logtostderr": "0"},
        capture_output=True,
        text=True,
    )
    assert "a directory for log files must be set" in result.stdout


def test_json_lines_hold_the_same_facts():
    first = json.loads(run(MYCELIA_LOG_FORMAT="json").splitlines()[0])
    assert (first["level"], first["part"], first["message"], first["where"]) == (
        "WARNING",
        "ME",
        "w 7",
        "<string>:4",
    )


def test_level_changes_while_running():
    script = """
from mycelia import log
log.info("no"); log.set_level("INFO"); log.info("yes"); log.set_level(4)
log.error("no"); log.set_level(0, "PARALLEL"); log.logger("mycelia.parallel.x").debug("deep")
print(log.get_level(), log.get_log_config())
"""
    assert messages(run(script)) == ["yes", "deep"]
