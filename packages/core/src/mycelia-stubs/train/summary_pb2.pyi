# Written by tools/gen_stubs.py.
from mycelia.train.summary.summary_pb2 import *
