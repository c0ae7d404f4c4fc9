# Written by tools/gen_stubs.py.
from mycelia.engine.compile.passes.early import *
