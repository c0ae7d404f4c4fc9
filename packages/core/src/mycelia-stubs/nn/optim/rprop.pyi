# Written by tools/gen_stubs.py.
from mycelia import *
from mycelia.amp import *
from mycelia.train import *
from mycelia.nn import *
