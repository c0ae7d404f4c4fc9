# Written by tools/gen_stubs.py.
from mycelia.faces.stand_ins.communication.handle import CommHandle as CommHandle, done as done

__all__ = [
    "CommHandle", "done",
]
