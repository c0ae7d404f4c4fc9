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


def test_the_level_of_a_part_is_none_of_parts_below_its_modules():
    script = """
from mycelia import log
for name in ("mycelia.x", "mycelia.engine.compile.x", "mycelia.engine.compile.executable", "mycelia.debug"):
    log.logger(name).info(name)
log.set_level("ERROR")
log.logger("mycelia.debug").warning("no")
log.logger("mycelia.engine.compile.x").info("still")
"""
    assert messages(run(script, MS_SUBMODULE_LOG_v="{PIPELINE:1}")) == ["mycelia.engine.compile.x", "still"]
    rest = messages(run(script, MS_SUBMODULE_LOG_v="{ME:1,SESSION:1}"))
    assert rest == ["mycelia.x", "mycelia.engine.compile.executable"]


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


FILES = dict(GLOG_logtostderr="0")


def level_files(folder, level):
    return sorted(folder.glob(f"rank_0/logs/mycelia.*.log.{level}.*"))


def test_each_level_has_a_file_in_glogs_form_and_a_link_to_it(tmp_path):
    run(GLOG_v="0", GLOG_log_dir=str(tmp_path), **FILES)
    seen = {}
    for level in ("INFO", "WARNING", "ERROR"):
        (file,) = level_files(tmp_path, level)
        name = rf"mycelia\.[^.]+\.[^.]+\.log\.{level}\.\d{{8}}-\d{{6}}\.\d+"
        assert re.fullmatch(name, file.name), file.name
        assert (file.parent / f"mycelia.{level}").resolve() == file.resolve()
        assert file.stat().st_mode & 0o777 == 0o640
        created, machine, form, *lines = file.read_text().splitlines()
        assert created.startswith("Log file created at: ") and machine.startswith("Running on machine: ")
        seen[level] = messages("\n".join(lines))
    assert seen["INFO"] == ["d", "i", "w 7", "e", "c", "from parallel"]
    assert seen["WARNING"] == ["w 7", "e", "c"]
    assert seen["ERROR"] == ["e", "c"]


def test_a_level_without_messages_has_no_file(tmp_path):
    run("from mycelia import log; log.warning('w')", GLOG_log_dir=str(tmp_path), **FILES)
    assert level_files(tmp_path, "WARNING") and not level_files(tmp_path, "ERROR")


def test_permissions_of_files(tmp_path):
    """Of those, too, that follow a full one."""
    script = "from mycelia import log\nfor i in range(9): log.error('x' * 1000)"
    run(script, GLOG_log_dir=str(tmp_path), GLOG_logfile_mode="0600", logger_maxBytes="4000", **FILES)
    files = [f for f in (tmp_path / "rank_0" / "logs").iterdir() if not f.is_symlink()]
    assert len(files) >= 6 and all(f.stat().st_mode & 0o777 == 0o600 for f in files)


def test_a_level_file_that_is_full_is_followed_by_the_next(tmp_path):
    script = "from mycelia import log\nfor i in range(30): log.warning('%03d ' + 'x' * 100_000, i)"
    run(script, GLOG_log_dir=str(tmp_path), GLOG_max_log_size="1", GLOG_stderrthreshold="4", **FILES)
    files = level_files(tmp_path, "WARNING")
    assert len(files) >= 3 and all(f.stat().st_size < 1.1 * 2**20 for f in files)
    numbers = [int(m[:3]) for f in files for m in messages("\n".join(f.read_text().splitlines()[3:]))]
    assert sorted(numbers) == list(range(30))


def test_a_forked_process_writes_files_of_its_own(tmp_path):
    script = """
import os
from mycelia import log
log.warning("parent")
child = os.fork()
if child == 0:
    log.warning("child"); os._exit(0)
os.waitpid(child, 0)
"""
    if not hasattr(os, "fork"):
        pytest.skip("fork is missing")
    run(script, GLOG_log_dir=str(tmp_path), **FILES)
    texts = [f.read_text() for f in level_files(tmp_path, "WARNING")]
    assert len(texts) == 2 and sum("] child" in t for t in texts) == 1
    assert sum("] parent" in t for t in texts) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is missing")
def test_a_full_disk_ends_the_files_and_not_the_program(tmp_path):
    script = """
import os
from mycelia import log
log.warning("before")
opened = os.open
os.open = lambda path, *args: opened("/dev/full", os.O_WRONLY)
log.error("lost"); log.error("lost, too")
print("goes on")
"""
    clean = {k: v for k, v in os.environ.items() if "log" not in k.lower()}
    env = {**clean, "GLOG_log_dir": str(tmp_path), "GLOG_stderrthreshold": "4", **FILES}
    result = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert result.stdout == "goes on\n"
    assert result.stderr.count(f"mycelia: log files in {tmp_path}") == 1


def test_bad_permissions_name_the_variable(tmp_path):
    env = {**os.environ, "GLOG_log_dir": str(tmp_path), "GLOG_logfile_mode": "rw", **FILES}
    result = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True)
    assert "GLOG_logfile_mode: permissions are an octal number such as 0640, but got 'rw'" in result.stderr


COMPILES = """
import mycelia as ms
from mycelia import ops
print(ms.jit(lambda x: ops.relu(x) + 1)(ms.Tensor([1.0, -1.0])))
"""


def test_verbose_tags_are_shown_whatever_the_level():
    lines = run(COMPILES, VLOG_v="12901", GLOG_v="4").splitlines()
    assert lines and all(line.startswith("[V12901] SESSION(") for line in lines)
    assert "instructions" in lines[0]


@pytest.mark.parametrize(
    "wanted, tags",
    [
        ("(12901,12902)", {"V12901", "V12902"}), ("(12902,)", {"V12902", "V20000"}),
        ("(,11000)", {"V11000"}), ("4711", set()), ("", set()),
    ],
)  # fmt: skip
def test_verbose_tags_are_chosen_by_ranges(wanted, tags):
    found = re.findall(r"(?m)^\[(V\d+)\]", run(COMPILES, MYCELIA_VLOG_v=wanted))
    assert set(found) == tags


def test_a_tag_tells_of_prints_and_dumped_tensors(tmp_path):
    script = f"""
import mycelia as ms
from mycelia import ops
ops.Print()("x", ms.Tensor([1]))
ms.jit(lambda x: ops.Print()(x) and x)(ms.Tensor([1]))
ops.TensorDump()({str(tmp_path / "a")!r}, ms.Tensor([1.0]))
"""
    told = messages(run(script, VLOG_v="10300"))
    assert [t.split(":")[0] for t in told] == ["Print", "TensorDump"], told


def test_the_tags_that_exist_are_listed():
    text = run(VLOG_v="20000")
    assert re.search(r"(?m)^\[V20000\] COMMON\(.*\] 12901: compiled functions", text), text


def test_a_bad_choice_of_tags_names_the_variable():
    env = {**os.environ, "VLOG_v": "(1;2)"}
    result = subprocess.run([sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True)
    assert "VLOG_v: expected a number n, or (a,b), (a,) or (,b), but got '(1;2)'" in result.stderr


def test_compiled_functions_are_told_at_level_info():
    assert "is compiled: " in run(COMPILES, GLOG_v="1") and not run(COMPILES)


def test_lines_of_one_rank_among_several_say_which():
    assert run(RANK_ID="3").startswith("[rank 3][WARNING] ME(")
    assert json.loads(run(RANK_ID="3", MYCELIA_LOG_FORMAT="json").splitlines()[0])["rank"] == 3


def test_the_modules_of_parts_exist():
    from importlib.util import find_spec

    from mycelia.engine.base import log

    own = {n for names in log.SUBMODULES.values() for n in names if n.partition(".")[0] == "mycelia"}
    assert not {name for name in own if find_spec(name) is None}
