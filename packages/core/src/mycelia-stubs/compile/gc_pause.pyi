# Written by tools/gen_stubs.py.
from mycelia.engine.compile.gc_pause import *
