"""Hook implementations of Mycelia Serving; imported the first time core calls a hook,
so nothing heavy at the top.
"""

from mycelia.hookspecs import hookimpl

HOOK_API = 1


@hookimpl
def mycelia_servable_loaders():
    from mycelia_serving.engine.loaders import load_mindir

    return {"mindir": load_mindir}


@hookimpl
def mycelia_compat_packages():
    return {"mindspore_serving": "mycelia_serving"}
