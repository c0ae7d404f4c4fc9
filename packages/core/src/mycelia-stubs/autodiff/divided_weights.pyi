# Written by tools/gen_stubs.py.
from mycelia.engine.autodiff.divided_weights import *
