# Written by tools/gen_stubs.py.
from mycelia.engine.compile.inter_op import *
