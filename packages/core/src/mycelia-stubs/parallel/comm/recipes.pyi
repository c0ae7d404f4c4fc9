# Written by tools/gen_stubs.py.
from mycelia.engine.communication.recipes import *
