# Written by tools/gen_stubs.py.
from mycelia import *
from mycelia.communication import *
from mycelia.parallel import *
