# Written by tools/gen_stubs.py.
from mycelia.engine.communication.reduction import *
