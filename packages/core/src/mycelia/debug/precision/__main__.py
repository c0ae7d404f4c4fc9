"""``python -m mycelia.debug.precision`` is the command `mycelia-precision`."""

from mycelia.debug.precision.cli import main

main()
