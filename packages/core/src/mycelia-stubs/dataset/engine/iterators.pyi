# Written by tools/gen_stubs.py.
from mycelia.dataset import *
from mycelia.dataset.execution.iterator import *
