# Written by tools/gen_stubs.py.
from mycelia.runtime import *
