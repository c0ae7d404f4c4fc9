"""Hook implementations of Mycelia Serving; imported the first time core calls a hook,
so nothing heavy at the top.
"""

HOOK_API = 1
