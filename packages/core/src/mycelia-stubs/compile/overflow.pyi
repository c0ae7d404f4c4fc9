# Written by tools/gen_stubs.py.
from mycelia.engine.compile.overflow import *
