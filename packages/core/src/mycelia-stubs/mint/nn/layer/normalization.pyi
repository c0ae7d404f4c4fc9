# Written by tools/gen_stubs.py.
from mycelia.mint.nn.functional import *
from mycelia.mint.nn import *
from mycelia.mint import *
