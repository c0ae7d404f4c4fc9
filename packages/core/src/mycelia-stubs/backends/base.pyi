# Written by tools/gen_stubs.py.
from mycelia.engine.backends.base import *
