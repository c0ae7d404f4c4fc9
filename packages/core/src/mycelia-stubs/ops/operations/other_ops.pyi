# Written by tools/gen_stubs.py.
from mycelia import *
from mycelia.autodiff import *
from mycelia.ops import *
from mycelia.ops.operations import *
