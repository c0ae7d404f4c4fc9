"""Start the ports, as MindSpore Serving 1.1 does.

from mycelia_serving import master, worker
worker.start_servable_in_master("servables", "add")
master.start_grpc_server("127.0.0.1", 5500)
"""

from __future__ import annotations

from mycelia_serving.cluster import current
from mycelia_serving.servable.arguments import check_int, check_str
from mycelia_serving.server.start import stop, stop_at_failure

__all__ = ["start_grpc_server", "start_master_server", "start_restful_server", "stop"]


def _address(ip: str, port_name: str, port: int) -> str:
    host = check_str("ip", ip)
    if host.startswith("unix:") or host.rpartition(":")[2].isdecimal() and "." in host:
        return host  # "ip:port" of later versions
    return f"{f'[{host}]' if ':' in host else host}:{check_int(port_name, port, 0, 65535)}"


@stop_at_failure
def start_grpc_server(
    ip: str = "0.0.0.0", grpc_port: int = 5500, max_msg_mb_size: int = 100, ssl_config=None
) -> None:
    """Open the gRPC port. Errors: RuntimeError that names parameter or address."""
    current.node().start_grpc(_address(ip, "grpc_port", grpc_port), max_msg_mb_size, ssl_config)


@stop_at_failure
def start_restful_server(
    ip: str = "0.0.0.0", restful_port: int = 5900, max_msg_mb_size: int = 100, ssl_config=None
) -> None:
    """Open the REST port. Errors: RuntimeError that names parameter or address."""
    current.node().start_rest(_address(ip, "restful_port", restful_port), max_msg_mb_size, ssl_config)


@stop_at_failure
def start_master_server(ip: str = "127.0.0.1", master_port: int = 6100) -> None:
    """Let workers of other processes and hosts join here, by `worker.start_servable`.

    Whoever reaches this port may offer a worker: give it an address of a network that is yours.
    """
    current.node().listen(_address(ip, "master_port", master_port))
