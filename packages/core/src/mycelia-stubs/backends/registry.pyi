# Written by tools/gen_stubs.py.
from mycelia.engine.backends.registry import *
