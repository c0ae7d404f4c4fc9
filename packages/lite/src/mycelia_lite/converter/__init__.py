"""The converter: importers of other frameworks' models, fusions, and the writer of `.ms` files."""

from __future__ import annotations

from mycelia_lite.converter.convert import Job, Report, convert, explain, jobs, run
from mycelia_lite.converter.converter import Converter
from mycelia_lite.converter.errors import Code, ConversionError, NotAvailable
from mycelia_lite.converter.options import Options, parse_shapes

__all__ = [
    "Code",
    "ConversionError",
    "Converter",
    "Job",
    "NotAvailable",
    "Options",
    "Report",
    "convert",
    "explain",
    "jobs",
    "parse_shapes",
    "run",
]
