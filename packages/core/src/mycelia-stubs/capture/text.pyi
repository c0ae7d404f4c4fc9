# Written by tools/gen_stubs.py.
from mycelia.engine.capture.text import *
