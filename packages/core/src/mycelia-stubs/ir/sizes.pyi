# Written by tools/gen_stubs.py.
from mycelia.engine.ir.sizes import *
