# Written by tools/gen_stubs.py.
from mycelia.engine.ir.walk import *
