# Written by tools/gen_stubs.py.
from mycelia.ops import *
from mycelia.mint import *
