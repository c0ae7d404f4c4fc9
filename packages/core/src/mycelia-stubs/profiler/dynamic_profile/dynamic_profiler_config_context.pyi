# Written by tools/gen_stubs.py.
from mycelia.profiler.steps import *
from mycelia.profiler import *
