# Written by tools/gen_stubs.py.
from mycelia.nn import *
from mycelia.nn.probability import *
