# Written by tools/gen_stubs.py.
from mycelia.engine.capture.calls import *
