"""Servables whose models run in agents of their own, as in MindSpore Serving."""

from __future__ import annotations

import os

from mycelia_serving.cluster import current
from mycelia_serving.cluster.child import Settings
from mycelia_serving.cluster.node import Plan
from mycelia_serving.distributed.startup import startup_agents
from mycelia_serving.servable.arguments import check_int, check_number, check_str
from mycelia_serving.servable.distributed import declare_servable
from mycelia_serving.server.start import stop_at_failure

__all__ = ["declare_servable", "start_servable", "startup_agents"]


@stop_at_failure
def start_servable(
    servable_directory: str,
    servable_name: str,
    rank_table_json_file: str,
    version_number: int = 1,
    distributed_address: str = "0.0.0.0:6200",
    wait_agents_time_in_seconds: float = 0,
) -> None:
    """Run a distributed servable, whose agents `startup_agents` starts on their hosts.

    Returns when all agents are there; wait_agents_time_in_seconds: how long they are waited for, 0: for ever.
    Errors: RuntimeError with the cause.
    """
    settings = Settings(
        os.path.abspath(check_str("servable_directory", servable_directory)),
        check_str("servable_name", servable_name),
        check_int("version_number", version_number, 1),
        leader={
            "rank_table": os.path.abspath(check_str("rank_table_json_file", rank_table_json_file)),
            "address": check_str("distributed_address", distributed_address),
            "wait_seconds": check_number("wait_agents_time_in_seconds", wait_agents_time_in_seconds, 0),
        },
    )
    current.node().serve(Plan(settings, [0], light=True))
