# Written by tools/gen_stubs.py.
from mycelia.engine.capture.rewrite_expressions import *
