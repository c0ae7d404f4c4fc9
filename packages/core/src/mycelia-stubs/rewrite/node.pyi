# Written by tools/gen_stubs.py.
from mycelia.rewrite.scopes import *
from mycelia.rewrite import *
