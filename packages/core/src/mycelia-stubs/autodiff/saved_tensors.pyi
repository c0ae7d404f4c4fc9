# Written by tools/gen_stubs.py.
from mycelia.engine.autodiff.saved_tensors import *
