# Written by tools/gen_stubs.py.
from mycelia.engine.ir.graph import *
