"""Hook implementations of Mycelia Insight; imported the first time core calls a hook,
so nothing heavy at the top.
"""

HOOK_API = 1
