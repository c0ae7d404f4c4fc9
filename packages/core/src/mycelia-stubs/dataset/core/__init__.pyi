# Written by tools/gen_stubs.py.
from mycelia.dataset.samplers import *
from mycelia.dataset import *
