# Written by tools/gen_stubs.py.
from mycelia.debug.precision.bisect import Bisect as Bisect, Metric as Metric
from mycelia.debug.precision.cli import main as main
from mycelia.debug.precision.operators import (
    describe as describe, operators as operators, overflow_lines as overflow_lines, subgraph as subgraph,
    tensors_of as tensors_of,
)
from mycelia.debug.reading.folders import Dump as Dump

__all__ = [
    "Bisect", "Dump", "MISMATCH", "Metric", "PROMPT", "automatic_check", "bisect_passes", "check_operators",
    "compare_dumps", "compare_files", "compared_summary", "convert_dump", "describe", "dump_overflow",
    "dump_reference", "dump_under_test", "list_operators", "main", "main_options", "node_information",
    "operators", "overflow_lines", "print_tensor", "run_command", "subgraph", "tensors_of", "train_both",
]

MISMATCH: int
PROMPT: str

def automatic_check(limit=3, compare=False) -> None:
    """Check what was collected: fused operators, overflows, then, with -c, all tensors against the trusted run."""

def bisect_passes(command, metric, good, passes='') -> None:
    """Find the smallest set of compiler passes to blame for a bad number, then the first operator."""

def check_operators(command, random=False, out=None, limit=10) -> None:
    """Run a script and check each operator of it alone against a reference in float64."""

def compare_dumps(left, right, graph=None, out=None, strict=False, by='name', names=None, threshold=0.98, html=None, as_msprobe=False) -> None:
    """Compare two dump folders: a CSV of all tensors, and the first operator that departs."""

def compare_files(files, named=False, print_count=20, atol=0.001, rtol=0.001, save=False) -> None:
    """Compare two arrays element by element."""

def compared_summary(file=None, cosine=0.98, limit=3) -> None:
    """List the operators of a comparison whose inputs or outputs differ, in order of execution."""

def convert_dump(source, out, layout='ND', kind='npy') -> None:
    """Make a file of each tensor in asynchronous dumps, `NAME.{input|output}.{i}.{shape}.{dtype}.npy`."""

def dump_overflow(command, steps='all') -> None:
    """Run a script and keep the operators whose outputs are not finite."""

def dump_reference(command, steps='0', fused=False) -> None:
    """Run a script with a dump of the trusted run."""

def dump_under_test(command, steps='0', fused=False) -> None:
    """Run a script with a dump of the run under test."""

def list_operators(name='', kind='', fusion='', kernel='', passes=False, folder=None) -> None:
    """List the operators of a dump, ``[Type][FusionPass] name``, or the passes of the compiler."""

def main_options(context, fail=False) -> None:
    """Compare the numbers of a run with those of a trusted one."""

def node_information(name, named=False, graph=None, folder=None, reference=None, attribute=None, depth=None) -> None:
    """Tell what an operator is: what feeds it, what it feeds, its lines, its dumped tensors on both sides."""

def print_tensor(file, named=False, convert=False) -> None:
    """Print what an array is."""

def run_command(command) -> None:
    """Run a command of the shell."""

def train_both(command, reference='', steps='0', fused=False) -> None:
    """Run both sides, one after the other."""
