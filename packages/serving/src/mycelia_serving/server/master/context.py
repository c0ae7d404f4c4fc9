"""`server.master.context`: settings of the master."""

from __future__ import annotations

from mycelia_serving.cluster import current
from mycelia_serving.servable.arguments import check_int

__all__ = ["set_max_enqueued_requests"]


def set_max_enqueued_requests(max_enqueued_requests: int) -> None:
    """How many requests may wait for workers; more are refused. 10000 by default."""
    current.set_option("max_enqueued_requests", check_int("max_enqueued_requests", max_enqueued_requests, 1))
