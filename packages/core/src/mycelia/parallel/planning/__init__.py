"""What a training on many ranks costs a step and a rank, computed before there are many ranks."""

from mycelia.parallel.planning.network import NETWORKS, Level, Network, read_network, text_of
from mycelia.parallel.planning.prices import STRATEGIES, Operator, Plan, Step, price

__all__ = [
    "NETWORKS", "STRATEGIES", "Level", "Network", "Operator", "Plan", "Step", "price", "read_network",
    "text_of",
]  # fmt: skip
