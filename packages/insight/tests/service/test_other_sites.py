"""Pages of other sites, whose requests a browser sends along: they change nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from asgi import Client

from mycelia_insight.runs.library import Library
from mycelia_insight.service.app import make_app
from mycelia_insight.service.settings import Settings

CHANGES = [
    ("PUT", "/api/v1/alerts", {"rule": "loss > 1"}),
    ("DELETE", "/api/v1/alerts/none", None),
    ("POST", "/v1/mindinsight/lineagemgr/lineages", {}),
    ("POST", "/v1/mindinsight/datavisual/train-job-caches", {"train_ids": []}),
]


def status(client: Client, method: str, path: str, body: object, **headers: str) -> int:
    data = b"" if body is None else json.dumps(body).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.ask(method, path, None, data, given).status_code


@pytest.fixture
def library(tmp_path):
    made = Library(str(tmp_path), str(tmp_path / "workspace"), 0)
    made.loaded = True
    return made


@pytest.mark.parametrize("method, path, body", CHANGES)
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"},
        {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site", "Origin": "http://localhost"},
    ],
)  # fmt: skip
def test_their_changes_are_refused(library, method, path, body, headers):
    client = Client(make_app(Settings(), library))
    assert status(client, method, path, body, **headers) == 403
    assert library.alerts.all() == []


@pytest.mark.parametrize(
    "headers",
    [
        {}, {"Origin": "http://localhost"}, {"Sec_Fetch_Site": "same-origin", "Origin": "http://localhost"},
        {"Sec_Fetch_Site": "none"}, {"Origin": "http://proxy.example", "X_Forwarded_Host": "proxy.example"},
    ],
)  # fmt: skip
def test_programs_and_own_pages_are_served(library, headers):
    client = Client(make_app(Settings(), library))
    assert [status(client, *one, **headers) for one in CHANGES] == [200, 404, 200, 200]


def test_links_from_other_sites_open_and_cors_lets_them_change(library):
    client = Client(make_app(Settings(), library))
    assert status(client, "GET", "/api/v1/runs", None, Sec_Fetch_Site="cross-site") == 200
    open_to_all = Client(make_app(Settings(enable_cors=True), library))
    assert status(open_to_all, *CHANGES[0], Origin="https://evil.example") == 200
