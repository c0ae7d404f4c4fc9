# Written by tools/gen_stubs.py.
from mycelia.engine.compile.passes.pass_manager import *
