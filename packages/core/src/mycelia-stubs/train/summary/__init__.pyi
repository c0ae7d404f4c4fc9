# Written by tools/gen_stubs.py.
from mycelia.train.summary.summary_record import SummaryRecord as SummaryRecord

__all__ = [
    "SummaryRecord",
]
