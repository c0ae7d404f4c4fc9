# Written by tools/gen_stubs.py.
from mycelia.engine.autodiff.jacobian_products import *
