"""The protocols: gRPC (MindSpore's and KServe v2), REST, metrics."""

from __future__ import annotations

__all__ = ["start_grpc", "start_rest"]


def __getattr__(name: str):
    if name == "start_grpc":
        from mycelia_serving.frontend.grpc_server import start_grpc

        return start_grpc
    if name == "start_rest":
        from mycelia_serving.frontend.rest_server import start_rest

        return start_rest
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
