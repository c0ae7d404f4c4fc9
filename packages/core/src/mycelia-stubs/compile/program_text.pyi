# Written by tools/gen_stubs.py.
from mycelia.engine.compile.program_text import *
