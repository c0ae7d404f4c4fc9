"""Start servables and their ports, as MindSpore Serving 1.3 and later do.

from mycelia_serving import server
server.start_servables(server.ServableStartConfig("servables", "add", num_parallel_workers=2))
server.start_grpc_server("127.0.0.1:5500")
"""

from __future__ import annotations

from mycelia_serving.lazy import lazy

_PLACES = {  # name -> module; imported when it is used: a config needs `register` only
    "register": "mycelia_serving.servable.register",
    "distributed": "mycelia_serving.server.distributed",
    "master": "mycelia_serving.server.master",
    "SSLConfig": "mycelia_serving.frontend.tls:SSLConfig",
    "ServableStartConfig": "mycelia_serving.server.start:ServableStartConfig",
    "start_servables": "mycelia_serving.server.start:start_servables",
    "start_grpc_server": "mycelia_serving.server.start:start_grpc_server",
    "start_restful_server": "mycelia_serving.server.start:start_restful_server",
    "stop": "mycelia_serving.server.start:stop",
}
__all__ = [
    "SSLConfig",
    "ServableStartConfig",
    "start_grpc_server",
    "start_restful_server",
    "start_servables",
    "stop",
]

__getattr__, __dir__ = lazy(__name__, globals(), _PLACES)
