"""What MindInsight 2.3.1 answered for the same folders, recorded by tools/oracle_insight.py."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]
from asgi import Client  # noqa: E402

from mycelia_insight.runs.library import Library  # noqa: E402
from mycelia_insight.service.app import make_app  # noqa: E402
from mycelia_insight.service.settings import Settings  # noqa: E402

FIXTURES = HERE.parent / "fixtures"
RECORDED = json.loads(gzip.decompress((FIXTURES / "mindinsight.json.gz").read_bytes()))
#: Ids are new with each process of MindInsight, times of runs are those of files, texts of errors are ours.
FREE = {"id", "update_time", "create_time", "error_msg"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    shutil.copytree(FIXTURES / "summary" / "run1", base / "run1")
    shutil.copytree(FIXTURES / "landscape", base / "landscape")
    library = Library(str(base), str(tmp_path_factory.mktemp("workspace")), 0)
    library.look()
    while library.read():
        pass
    library.loaded = True
    return Client(make_app(Settings(), library))


def assert_alike(theirs, ours, free: set[str], at: str = "") -> None:
    if isinstance(theirs, dict):
        assert theirs.keys() == ours.keys(), at
        for key in theirs.keys() - free:
            assert_alike(theirs[key], ours[key], free, f"{at}.{key}")
    elif isinstance(theirs, list):
        assert len(theirs) == len(ours), at
        for i, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            assert_alike(one, other, free, f"{at}[{i}]")
    elif isinstance(theirs, float) or isinstance(ours, float):
        # A count of a shared bucket is rounded up: what rounding leaves of a whole number may count as one.
        near = 1 if "buckets" in at and at.endswith("[2]") else 1e-9
        assert math.isclose(theirs, ours, rel_tol=1e-6, abs_tol=near), (at, theirs, ours)
    else:
        assert theirs == ours, (at, theirs, ours)


@pytest.mark.parametrize("path", sorted({path for path, *_ in RECORDED}))
def test_answers_are_those_of_mindinsight(client, path):
    for asked, params, body, status, theirs in RECORDED:
        if asked != path:
            continue
        address = f"/v1/mindinsight{path}"
        given = [tuple(one) for one in params]
        ours = client.get(address, given) if body is None else client.post(address, body)
        assert ours.status_code == status, (params, body, ours.text[:200])
        found = ours.json()
        if path == "/datavisual/train-jobs" and status == 200:
            if params:
                assert len(found["train_jobs"]) == len(theirs["train_jobs"]) == 1
                continue
            for one in (theirs, found):  # in the order of times, which are those of files
                one["train_jobs"].sort(key=lambda job: job["train_id"])
            theirs["name"] = found["name"]
        assert_alike(theirs, found, FREE - ({"id"} if path == "/datavisual/single-job" else set()), path)


def test_what_was_recorded_is_not_little():
    assert len(RECORDED) > 250 and sum(case[3] == 200 for case in RECORDED) > 200
