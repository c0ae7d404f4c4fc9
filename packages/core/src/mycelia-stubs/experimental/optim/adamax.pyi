# Written by tools/gen_stubs.py.
from mycelia.experimental.optim import *
