# Written by tools/gen_stubs.py.
from mycelia.engine.ir.types import TensorType as TensorType
from mycelia.engine.ops.cost import (
    Cost as Cost, cost as cost, picks as picks, product as product, recurrent as recurrent,
    traffic as traffic, window as window,
)

__all__ = [
    "Cost", "TensorType", "cost", "picks", "product", "recurrent", "traffic", "window",
]
