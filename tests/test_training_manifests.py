"""The manifests of examples/kubernetes fit the schemas of Kubeflow's operators, of KubeRay, and our options.

`training_manifest_schemas.json` holds the parts of their custom resource definitions that trainings use.
"""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
import typer

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "packages" / "serving" / "tests" / "cluster"))
from manifest_check import problems  # noqa: E402

from mycelia.cli import app  # noqa: E402

FILES = sorted((ROOT / "examples" / "kubernetes").glob("*.yaml"))
SCHEMAS = json.loads((Path(__file__).parent / "training_manifest_schemas.json").read_text())


def read(file):
    document = yaml.safe_load(file.read_text())
    return document, SCHEMAS[f"{document['apiVersion']}/{document['kind']}"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_manifests_fit_their_schemas(file):
    document, schema = read(file)
    assert problems(document, schema, document["kind"]) == []


@pytest.mark.parametrize(
    ("name", "place", "wrong"),
    [
        ("pytorchjob", ("spec", "pytorchReplicaSpecs", "Worker", "replicas"), "three"),
        ("pytorchjob", ("spec", "pytorchReplicaSpecs", "Workers"), {}),
        ("mpijob", ("spec", "slotsPerWorker"), 0),
        ("mpijob", ("spec", "mpiImplementation"), "LAM"),
        ("rayjob", ("spec", "rayClusterSpec", "headGroupSpec", "rayStartParams"), {"num-cpus": 0}),
    ],
)
def test_the_check_finds_what_is_wrong(name, place, wrong):
    document, schema = read(ROOT / "examples" / "kubernetes" / f"{name}.yaml")
    at = document
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = wrong
    assert problems(document, schema, document["kind"])


def commands(value):
    """The command lines in a manifest."""
    if isinstance(value, dict):
        if "entrypoint" in value:
            yield shlex.split(value["entrypoint"])
        if "command" in value:
            yield [*value["command"], *value.get("args", ())]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from commands(item)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_command_lines_of_manifests_are_ours(file, tmp_path):
    found = list(commands(read(file)[0]))
    assert found
    (tmp_path / "train.py").touch()
    for words in found:
        words = [str(tmp_path / "train.py") if w == "/job/train.py" else w for w in words]
        words = words[words.index("mycelia") + 1 :]
        command = typer.main.get_command(app).commands[words[0]]
        context = command.make_context(words[0], words[1:])
        assert context.args == ["--states", "/job/states"]


def test_processes_fit_the_pods():
    """As many as are started have room."""
    ray = read(ROOT / "examples" / "kubernetes" / "rayjob.yaml")[0]["spec"]
    words = shlex.split(ray["entrypoint"])
    asked = int(words[words.index("--worker_num") + 1]) * int(words[words.index("--cpus") + 1])
    (group,) = ray["rayClusterSpec"]["workerGroupSpecs"]
    container = group["template"]["spec"]["containers"][0]
    assert asked == group["replicas"] * int(container["resources"]["limits"]["cpu"])
    mpi = read(ROOT / "examples" / "kubernetes" / "mpijob.yaml")[0]["spec"]
    launcher = mpi["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]["command"]
    count = int(launcher[launcher.index("-n") + 1])
    assert count == mpi["slotsPerWorker"] * mpi["mpiReplicaSpecs"]["Worker"]["replicas"]
