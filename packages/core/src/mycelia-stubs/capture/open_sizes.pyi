# Written by tools/gen_stubs.py.
from mycelia.engine.capture.open_sizes import *
