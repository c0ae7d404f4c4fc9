# Written by tools/gen_stubs.py.
from mycelia import *
from mycelia.compile import *
