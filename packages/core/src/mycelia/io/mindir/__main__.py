"""Prints a MindIR file as text: ``python -m mycelia.io.mindir MODEL.mindir``."""

import sys

from mycelia.io.mindir import read_model
from mycelia.io.mindir.text import to_text

if len(sys.argv) != 2:
    raise SystemExit("usage: python -m mycelia.io.mindir MODEL.mindir")
sys.stdout.write(to_text(read_model(sys.argv[1])))
