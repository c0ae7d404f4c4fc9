# Written by tools/gen_stubs.py.
