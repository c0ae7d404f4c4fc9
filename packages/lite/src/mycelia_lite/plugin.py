"""Hook implementations of Mycelia Lite; imported the first time core calls a hook,
so nothing heavy at the top.
"""

from mycelia.hookspecs import hookimpl

HOOK_API = 1


@hookimpl
def mycelia_servable_loaders():
    from mycelia_lite.serving import ServedModel

    return {"ms": ServedModel, "mindir_lite": ServedModel}
