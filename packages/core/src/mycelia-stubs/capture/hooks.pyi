# Written by tools/gen_stubs.py.
from mycelia.engine.capture.hooks import *
