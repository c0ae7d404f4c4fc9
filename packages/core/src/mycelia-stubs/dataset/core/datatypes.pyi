# Written by tools/gen_stubs.py.
from mycelia.faces.compat.dataengine import *
