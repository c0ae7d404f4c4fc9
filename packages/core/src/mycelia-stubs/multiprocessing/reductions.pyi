# Written by tools/gen_stubs.py.
from mycelia.faces.compat.processes import *
