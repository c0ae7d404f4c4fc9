"""Servables on Ray Serve: each replica is a light server, Ray spreads the requests and scales.

`Replica` needs no Ray; `deploy` does (pip install mycelia-serving[ray]).
"""

from __future__ import annotations

import asyncio

from mycelia_serving.cluster.child import Settings
from mycelia_serving.cluster.light import LightDeployment
from mycelia_serving.cluster.master import Master
from mycelia_serving.cluster.scaling import ScalePolicy

APPLICATION = "mycelia-serving"


class Replica:
    """The servables in one process, answering REST and KServe v2 as the REST port does."""

    def __init__(self, servables: list[Settings], max_msg_mb_size: int = 100) -> None:
        from mycelia_serving.frontend.rest import Rest

        self._master = Master()
        self._deployments = []
        try:
            for settings in servables:
                deployment = LightDeployment(self._master, settings)
                deployment.start([None])
                self._deployments.append(deployment)
        except BaseException:
            self.close()
            raise
        self._rest = Rest(self._master)
        self._largest = max_msg_mb_size << 20

    async def __call__(self, request):
        """Answer a `starlette.requests.Request`."""
        from starlette.responses import Response

        from mycelia_serving.frontend.http import HttpRequest

        path = request.scope.get("raw_path") or request.scope["path"].encode()
        headers = {
            name.decode("latin-1").lower(): v.decode("latin-1") for name, v in request.scope["headers"]
        }
        asked = HttpRequest(
            request.method, path.decode("latin-1"), request.scope["query_string"].decode("latin-1"), headers
        )
        reply = self._rest.refuse(asked)
        if reply is None:
            asked.body = await self._body(request)
            if len(asked.body) > self._largest:
                reply = self._rest.broken(413, f"the body is larger than {self._largest >> 20} MB")
        if reply is None:
            reply = await self._handle(asked)
        return Response(reply.body, reply.status, dict(reply.headers), reply.content_type)

    async def _body(self, request) -> bytes:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._largest:
                break
        return bytes(body)

    async def _handle(self, asked):
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def done(reply) -> None:
            loop.call_soon_threadsafe(lambda: future.done() or future.set_result(reply))

        call = self._rest.handle(asked, done)
        try:
            return await future
        except asyncio.CancelledError:
            if call is not None:
                call.cancel()
            raise

    def check_health(self) -> None:
        """Ray replaces a replica for which this raises."""
        if not self._master.ready():
            raise RuntimeError("a servable has no worker")

    def close(self) -> None:
        """End the engines."""
        for deployment in self._deployments:
            deployment.stop(0.0)
        self._master.close()

    def __del__(self) -> None:  # what Ray calls when a replica ends
        if getattr(self, "_rest", None) is not None:
            self.close()


def options(
    count: int, scale: ScalePolicy | None, drain_seconds: float, max_ongoing_requests: int, cpus: float
) -> dict:
    """What Ray is told about the replicas."""
    told = {
        "name": APPLICATION,
        "max_ongoing_requests": max_ongoing_requests,
        "graceful_shutdown_timeout_s": drain_seconds,
        "health_check_period_s": 5,
        "ray_actor_options": {"num_cpus": cpus},
    }
    if scale is None:
        return {**told, "num_replicas": max(count, 1)}
    return {**told, "autoscaling_config": {"min_replicas": scale.least, "max_replicas": scale.most}}


def deploy(servables: list[Settings], address: str, route_prefix: str, cluster: str, **told) -> bool:
    """Run the servables on the Ray cluster at an address, or on one of this process where it is empty.

    address: "ip:port" of Ray's HTTP proxy. told: see `options`. Returns whether they end with this process.
    Errors: RuntimeError without Ray, or if a replica cannot start.
    """
    try:
        import ray
        from ray import serve
    except ImportError:
        raise RuntimeError("--engine ray needs the package ray: pip install mycelia-serving[ray]") from None
    host, _, port = address.rpartition(":")
    try:
        own = {} if cluster else {"include_dashboard": False}
        ray.init(address=cluster or None, ignore_reinit_error=True, **own)
        serve.start(http_options={"host": host, "port": int(port)})
        deployment = serve.deployment(Replica).options(**options(**told))
        serve.run(deployment.bind(servables), name=APPLICATION, route_prefix=route_prefix)
    except Exception as e:  # Ray has errors of many kinds
        raise RuntimeError(f"Ray: {e}") from e
    return not cluster
