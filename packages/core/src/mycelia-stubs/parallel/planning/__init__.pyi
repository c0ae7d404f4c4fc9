# Written by tools/gen_stubs.py.
from mycelia.parallel.planning.network import (
    Level as Level, Network as Network, read_network as read_network, text_of as text_of,
)
from mycelia.parallel.planning.prices import (
    Operator as Operator, Plan as Plan, Step as Step, price as price,
)

__all__ = [
    "NETWORKS", "STRATEGIES", "Level", "Network", "Operator", "Plan", "Step", "price", "read_network",
    "text_of",
]

NETWORKS: dict
STRATEGIES: dict
