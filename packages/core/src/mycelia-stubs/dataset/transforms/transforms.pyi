# Written by tools/gen_stubs.py.
from mycelia.dataset.transforms import *
from mycelia.dataset.vision import *
