"""Clients of Mycelia Serving and of MindSpore Serving.

client = Client("127.0.0.1:5500", "add", "add_common")
client.infer([{"x1": x1, "x2": x2}])  # [{"y": ...}]
"""

from __future__ import annotations

from mycelia_serving.client.asynchronous import AsyncClient
from mycelia_serving.client.calls import SSLConfig
from mycelia_serving.client.synchronous import Client, InferFuture

__all__ = ["AsyncClient", "Client", "InferFuture", "SSLConfig"]
