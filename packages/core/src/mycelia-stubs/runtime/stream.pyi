# Written by tools/gen_stubs.py.
from mycelia.engine.runtime.stream import *
