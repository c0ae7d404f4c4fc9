# Written by tools/gen_stubs.py.
from mycelia.engine.ir.symint import *
