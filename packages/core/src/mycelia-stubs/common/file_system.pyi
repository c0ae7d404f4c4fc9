# Written by tools/gen_stubs.py.
from mycelia.faces.compat.file_system import *
