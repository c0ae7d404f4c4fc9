# Written by tools/gen_stubs.py.
from mycelia.engine.compile.timing import *
