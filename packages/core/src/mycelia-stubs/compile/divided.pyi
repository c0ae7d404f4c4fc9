# Written by tools/gen_stubs.py.
from mycelia.engine.compile.divided import *
