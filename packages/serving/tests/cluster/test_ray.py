"""The replica of Ray Serve, without Ray; with it where MYCELIA_SERVING_RAY names a Python that has both."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import urllib.request

import pytest

from mycelia_serving.cluster import ray
from mycelia_serving.cluster.child import Settings
from mycelia_serving.cluster.scaling import ScalePolicy


def ask(replica, method: str, path: str, body: bytes = b"", query: bytes = b""):
    """Status and body of the replica's answer to an ASGI request."""
    from starlette.requests import Request

    parts = [body[:10], body[10:]]

    async def receive():
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": [(b"Content-Length", str(len(body)).encode())],
    }
    response = asyncio.run(replica(Request(scope, receive)))
    return response.status_code, response.body


@pytest.fixture(scope="module")
def replica(servables):
    replica = ray.Replica([Settings(str(servables), "calc")], max_msg_mb_size=1)
    yield replica
    replica.close()


def test_a_replica_answers_as_the_rest_port_does(replica):
    body = json.dumps({"instances": [{"x": 2}, {"x": [1, 2]}]}).encode()
    status, answer = ask(replica, "POST", "/model/calc/version/1:twice", body)
    assert (status, json.loads(answer)) == (200, {"instances": [{"y": 4}, {"y": [2, 4]}]})
    assert ask(replica, "POST", "/model/nothing:twice", body)[0] == 404
    assert ask(replica, "GET", "/v2/health/ready")[0] == 200
    assert ask(replica, "POST", "/model/calc:twice", bytes(2 << 20))[0] == 413
    replica.check_health()


def test_what_ray_is_told():
    told = ray.options(3, None, 20.0, 64, 0.5)
    assert told["num_replicas"] == 3 and told["ray_actor_options"] == {"num_cpus": 0.5}
    told = ray.options(3, ScalePolicy(1, 4), 20.0, 64, 1)
    assert told["autoscaling_config"] == {"min_replicas": 1, "max_replicas": 4} and "num_replicas" not in told


@pytest.mark.skipif("MYCELIA_SERVING_RAY" not in os.environ, reason="a local Ray is heavy")
def test_servables_run_on_a_real_ray(servables, tmp_path, until):
    import subprocess

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    process = subprocess.Popen(
        [
            *(os.environ["MYCELIA_SERVING_RAY"], "-m", "mycelia_serving", "deploy", "--engine", "ray"),
            *("-d", str(servables), "-s", "calc", "--rest", address, "--cpus", "0.5"),
        ],
        cwd=tmp_path,
        start_new_session=True,
    )

    def answer():
        data = json.dumps({"instances": [{"x": 2}]}).encode()
        request = urllib.request.Request(f"http://{address}/model/calc:twice", data)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)
        except OSError:
            assert process.poll() is None
            return None

    try:
        until(lambda: answer() == {"instances": [{"y": 4}]})
    finally:
        os.killpg(process.pid, 15)
        process.wait(60)
