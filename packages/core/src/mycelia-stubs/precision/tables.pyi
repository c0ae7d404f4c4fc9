# Written by tools/gen_stubs.py.
from mycelia.debug.precision.sums import alike_kinds as alike_kinds
from mycelia.debug.precision.tables import (
    Elements as Elements, compare_elements as compare_elements, element_table as element_table,
    first_table as first_table, load as load, summary as summary, text_of as text_of,
)
from mycelia.debug.reading.arrays import read_array as read_array
from mycelia.debug.statistics import statistics as statistics

__all__ = [
    "Elements", "alike_kinds", "compare_elements", "element_table", "first_table", "load", "read_array",
    "statistics", "summary", "text_of",
]
