# Written by tools/gen_stubs.py.
from mycelia.engine.compile.passes.graph_files import *
