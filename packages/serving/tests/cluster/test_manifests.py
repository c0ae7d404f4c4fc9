"""The manifests of docs/serving-at-scale.md fit the schemas of Kubernetes and KServe, and our options.

`manifest_schemas.json` holds the parts of those schemas that the manifests use: KServe's and the pods' from
its custom resource definitions, the other kinds from the reference of Kubernetes. Nothing else is allowed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from manifest_check import problems  # noqa: E402

MANIFESTS = HERE.parents[1] / "manifests"
SCHEMAS = json.loads((HERE / "manifest_schemas.json").read_text())


def documents():
    for file in sorted(MANIFESTS.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            yield pytest.param(document, id=f"{file.stem}-{document['kind']}")


@pytest.mark.parametrize("document", list(documents()))
def test_manifests_fit_their_schemas(document):
    schema = SCHEMAS[f"{document['apiVersion']}/{document['kind']}"]
    assert problems(document, schema, document["kind"]) == []


def test_the_check_finds_what_is_wrong():
    good = next(iter(yaml.safe_load_all((MANIFESTS / "kubernetes.yaml").read_text())))
    schema = SCHEMAS["apps/v1/Deployment"]
    for place, wrong in [(("spec", "replicas"), "two"), (("spec", "replica"), 2), (("metadata",), {})]:
        bad = json.loads(json.dumps(good))
        at = bad
        for name in place[:-1]:
            at = at[name]
        at[place[-1]] = wrong
        assert problems(bad, schema, "Deployment"), place


def commands():
    """The command lines of all containers."""
    for parameter in documents():
        document = parameter.values[0]
        pod = document["spec"].get("template", {}).get("spec", document["spec"])
        for container in pod.get("containers", ()):
            words = [*container["command"], *container["args"]]
            if words[0] == "sh":
                words = words[-1].split()[1:]
            yield pytest.param(words, id=parameter.id)


@pytest.mark.parametrize("words", list(commands()))
def test_command_lines_of_manifests_are_ours(words):
    import typer

    from mycelia_serving.cli import app

    assert words[0] == "mycelia-serving"
    command = typer.main.get_command(app).commands[words[1]]
    context = command.make_context(words[1], words[2:], resilient_parsing=False)
    assert context.params["rest" if words[1] == "start" else "probe"].startswith("0.0.0.0:")
