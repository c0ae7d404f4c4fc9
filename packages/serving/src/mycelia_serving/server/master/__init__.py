"""`server.master`: settings of the master, and the ports, which `server` has too."""

from __future__ import annotations

from mycelia_serving.server.master import context
from mycelia_serving.server.start import start_grpc_server, start_restful_server, stop

__all__ = ["context", "start_grpc_server", "start_restful_server", "stop"]
