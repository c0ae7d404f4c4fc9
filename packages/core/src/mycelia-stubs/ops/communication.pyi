# Written by tools/gen_stubs.py.
from mycelia.mint.distributed import *
