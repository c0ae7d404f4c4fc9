# Written by tools/gen_stubs.py.
from mycelia.faces.compat.scipy_ops import *
from mycelia.scipy.linalg import *
from mycelia.scipy import *
