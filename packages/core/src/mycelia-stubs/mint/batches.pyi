# Written by tools/gen_stubs.py.
from mycelia.faces.mint.batches import batch_norm_elemt as batch_norm_elemt
from mycelia.mint import (
    batch_norm_gather_stats_with_counts as batch_norm_gather_stats_with_counts,
    batch_norm_stats as batch_norm_stats, conv_tbc as conv_tbc,
)
from mycelia.ops import assign as assign

__all__ = [
    "assign", "batch_norm_elemt", "batch_norm_gather_stats_with_counts", "batch_norm_stats", "conv_tbc",
]
