"""Names of earlier versions for servables whose models run in agents of their own."""

from mycelia_serving.distributed.startup import startup_agents
from mycelia_serving.servable.distributed import declare_servable

declare_distributed_servable = declare_servable
startup_worker_agents = startup_agents

__all__ = ["declare_distributed_servable", "declare_servable", "startup_agents", "startup_worker_agents"]
