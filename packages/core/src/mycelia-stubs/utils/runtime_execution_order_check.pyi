# Written by tools/gen_stubs.py.
from mycelia.utils import *
from mycelia.utils.execution_order import *
