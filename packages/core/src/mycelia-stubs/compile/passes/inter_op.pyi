# Written by tools/gen_stubs.py.
from mycelia.engine.compile.passes.inter_op import *
