# Written by tools/gen_stubs.py.
from . import optim as optim
