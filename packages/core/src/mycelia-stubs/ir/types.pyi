# Written by tools/gen_stubs.py.
from mycelia.engine.ir.types import *
