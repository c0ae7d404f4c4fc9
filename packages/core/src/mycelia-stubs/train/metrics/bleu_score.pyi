# Written by tools/gen_stubs.py.
from mycelia import *
from mycelia.io import *
from mycelia.nn import *
from mycelia.amp import *
from mycelia.train import *
