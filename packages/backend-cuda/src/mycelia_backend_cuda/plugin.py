"""Hook implementations of the CUDA backend; imported the first time core calls a hook,
so nothing heavy at the top.
"""

HOOK_API = 1
