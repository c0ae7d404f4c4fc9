# Written by tools/gen_stubs.py.
from mycelia.engine.autodiff.clipping import *
