"""`mycelia-lite benchmark` as a user calls it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import mycelia_lite as mslite
from mycelia_lite.benchmark import DUMP_VARIABLE, cosine, mean_bias
from mycelia_lite.cli import app
from mycelia_lite.converter import convert


@pytest.fixture(scope="module")
def model_file(lenet, tmp_path_factory):
    return convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path_factory.mktemp("ms") / "lenet")).path


def called(*options: str, **environment: str):
    return CliRunner().invoke(app, ["benchmark", *options], env=environment)


@pytest.fixture
def given(model_file, lenet, tmp_path):
    """(options for two images, a file with golden outputs)"""
    lenet[1][:2].tofile(tmp_path / "x.bin")
    model = mslite.Model()
    model.build_from_file(model_file)
    name = model.get_outputs()[0].name
    values = " ".join(f"{v:.9g}" for v in lenet[2][:2].ravel())
    (tmp_path / "golden.txt").write_text(f"{name} 2 2 10\n{values}\n")
    options = [f"--modelFile={model_file}", "--inputShapes=2,1,32,32", f"--inDataFile={tmp_path / 'x.bin'}"]
    return options, str(tmp_path / "golden.txt"), name


def test_the_performance_line_and_the_profile(given, model_file):
    done = called(*given[0], "--numThreads=1", "--loopCount=4", "--warm-up-loop-count", "1",
                  "--timeProfiling=true")  # fmt: skip
    assert done.exit_code == 0, done.output
    line = re.search(
        r"^Model = lenet.ms, NumThreads = 1, "
        r"MinRunTime = (\S+) ms, MaxRuntime = (\S+) ms, AvgRunTime = (\S+) ms$",
        done.output,
        re.M,
    )
    least, most, mean = map(float, line.groups())
    assert 0 < least <= mean <= most
    total, kernels = map(
        float, re.search(r"^total time : (\S+) ms, kernel cost : (\S+) ms$", done.output, re.M).groups()
    )
    assert 0 < kernels <= total
    rows = [line.split() for line in done.output.splitlines() if line.startswith("Conv2DFusion")]
    assert [row[3] for row in rows if row[0] == "Conv2DFusion"] == ["8"]  # of the type: two nodes, four runs
    shares = [float(line.split()[2]) for line in done.output.splitlines() if re.search(r" 4 +\d", line)]
    assert abs(sum(shares) - 1) < 0.5 and "arena_bytes = " in done.output


def test_golden_outputs_are_compared(given):
    options, golden, name = given
    done = called(*options, f"--benchmarkDataFile={golden}")
    assert done.exit_code == 0 and "Mean bias of all nodes/tensors: 0.000" in done.output, done.output
    assert f"Data of node {name} : " in done.output
    text = open(golden).read().split("\n")
    numbers = text[1].split()
    with open(golden, "w") as file:
        file.write("\n".join([text[0], " ".join([str(float(numbers[0]) * 1.5), *numbers[1:]]), ""]))
    done = called(*options, f"--benchmarkDataFile={golden}")
    assert done.exit_code == 1 and "Mean bias of all nodes/tensors is too big" in done.output
    assert called(*options, f"--benchmarkDataFile={golden}", "--accuracyThreshold=90").exit_code == 0
    done = called(*options, f"--benchmarkDataFile={golden}", "--accuracyThreshold=90",
                  "--cosineDistanceThreshold=0.9999999")  # fmt: skip
    assert done.exit_code == 1 and "least cosine distance" in done.output
    for bad, reason in (
        (f"{name} 2 2 10\n1 2 3\n", "expected 'name ndim d0 d1 ...'"),
        ("other 1 1\n1\n", "has no output"),
        (f"{name} 1 20\n{' '.join(numbers)}\n", r"has shape [2, 10], the golden one [20]"),
        ("", "has 0 lines"),
    ):
        with open(golden, "w") as file:
            file.write(bad)
        done = called(*options, f"--benchmarkDataFile={golden}")
        assert done.exit_code == 1 and reason in done.output, done.output


def test_biases():
    one, two = np.array([1.0, -2.0, 0.0]), np.array([1.1, -2.0, 0.0])
    assert mean_bias(one, one) == 0 and abs(mean_bias(one, two) - 10) < 1e-6
    assert mean_bias(one, np.array([np.nan, 0, 0])) == np.inf
    assert (
        cosine(one, -one) == pytest.approx(-1) and cosine(0 * one, 0 * one) == 1 and cosine(0 * one, one) == 0
    )


def test_what_nodes_compute_is_dumped(given, tmp_path, lenet, model_file):
    model = mslite.Model()
    model.build_from_file(model_file)
    nodes = [name for name, *_ in model.profile(0)]
    settings = {"dump_mode": 1, "path": str(tmp_path / "dump"), "net_name": "net", "input_output": 2,
                "kernels": [nodes[-1]]}  # fmt: skip
    config = tmp_path / "dump.json"
    config.write_text(json.dumps({"common_dump_settings": settings}))
    done = called(*given[0], **{DUMP_VARIABLE: str(config)})
    assert done.exit_code == 0, done.output
    (file,) = (tmp_path / "dump" / "net").iterdir()
    assert file.name == f"{nodes[-1].replace('/', '-')}_output_0_2_10_float32_NCHW.bin"
    assert np.abs(np.fromfile(file, np.float32).reshape(2, 10) - lenet[2][:2]).max() < 1e-5
    settings |= {"dump_mode": 0, "input_output": 0, "net_name": "all"}
    config.write_text(json.dumps({"common_dump_settings": settings}))
    assert called(*given[0], **{DUMP_VARIABLE: str(config)}).exit_code == 0
    assert len(list((tmp_path / "dump" / "all").iterdir())) > 2 * len(nodes)
    settings |= {"dump_mode": 1, "kernels": ["nobody"]}
    config.write_text(json.dumps({"common_dump_settings": settings}))
    done = called(*given[0], **{DUMP_VARIABLE: str(config)})
    assert done.exit_code == 1 and "no nodes nobody" in done.output


def test_clients_load_a_runner(given):
    done = called(*given[0], "--enableParallelPredict=true", "--parallelNum=3", "--parallelTaskNum=4",
                  "--workersNum=2", "--numThreads=1")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "parallel predict of 12 tasks by 3 clients took" in done.output and "AvgRunTime" in done.output


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--device=GPU", "device must be CPU"),
        ("--modelFile=/no/such.ms", "cannot open '/no/such.ms'"),
        ("--numThreads=0", "thread_num must be at least 1"),
        ("--inputShapes=a,b", "inputShapes must look like"),
        ("--inputShapes=2,2,32,32", "was converted with size 1 of axis 1"),
        ("--inDataFile=/dev/null", "has 0 bytes"),
        ("--perfProfiling=true", "counters of the processor are not read"),
        ("--loopCount=0", "loop_count must be at least 1"),
        ("--timeProfiling=yes", "timeProfiling must be true or false"),
        ("--cpuCoreList=9999", "names core 9999"),
        ("--benchmarkDataType=INT64", "benchmarkDataType must be one of"),
        ("--configFile=/no/such", "cannot read the configuration"),
        ("--decryptKey=zz", "decryptKey must be 32, 48 or 64 hexadecimal digits, but got 2 characters"),
        (f"--decryptKey={'x' * 32}", "decryptKey must be 32, 48 or 64 hexadecimal digits"),
        ("--parallelTaskNum=0", "parallel_task_num must be at least 1"),
    ],
)
def test_bad_options_are_named(given, option, reason):
    done = called(*given[0], option)
    assert done.exit_code == 1 and f"benchmark failed: {reason}"[:18] in done.output
    assert reason in done.output, done.output


@pytest.mark.parametrize(("name", "value"), [("decryptKey", "0" * 32), ("configFile", "/no/such")])
def test_a_runner_is_not_measured_without_what_was_asked_for(given, name, value):
    done = called(*given[0], "--enableParallelPredict=true", f"--{name}={value}")
    assert done.exit_code == 1 and f"{name} is for one model" in done.output, done.output
