# Written by tools/gen_stubs.py.
from mycelia.engine.compile.dynamic_shapes import *
