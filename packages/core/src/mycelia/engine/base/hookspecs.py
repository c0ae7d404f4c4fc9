"""All hooks of Mycelia on one page. A plugin implements any of them in the module its entry point names:

    from mycelia.engine.base.hookspecs import hookimpl

    HOOK_API = 1

    @hookimpl
    def mycelia_backends():
        from acme.backend import AcmeBackend  # heavy imports inside: the module is loaded with the first hook
        call return [AcmeBackend()]

A plugin takes only the arguments that it needs. Core's own parts join through the same hooks
(`mycelia.builtin`).
"""

from __future__ import annotations

import pluggy

HOOK_API = (
    1  # raised when a hook changes so that old plugins would do harm; compared with the plugin's own number
)

hookspec = pluggy.HookspecMarker("mycelia")
hookimpl = pluggy.HookimplMarker("mycelia")


@hookspec
def mycelia_backends():
    """Return a list of `mycelia.backends.base.Backend` objects, the devices that this plugin brings."""


@hookspec
def mycelia_ops():
    """Return a list of modules (names or objects) to import because they define ops."""


@hookspec
def mycelia_kernels(backend_name):
    """Return extra kernels for an existing backend: a dict (op, dtypes) -> kernel, or a table capsule."""


@hookspec(firstresult=True)
def mycelia_kernel_library(target):
    """Return the kernel library for `target` ("cpu", "micro"): table capsule, source and CMake directory."""


@hookspec
def mycelia_passes(pipeline, stage, backend):
    """Append or insert compile passes: `pipeline` is the list of one `stage` ("optimize", "lower"), to be
    changed in place.
    """


@hookspec
def mycelia_exporters():
    """Return a dict from format name ("MINDIR", "ONNX", ...) to an export function."""


@hookspec
def mycelia_importers():
    """Return a dict from format name to an import function."""


@hookspec(firstresult=True)
def mycelia_dataset_cache(config):
    """Return a client of the dataset cache that `config`, a `DatasetCache`, describes."""


@hookspec
def mycelia_begin(compiling):
    """Called once before the first function is compiled (`compiling`), and once when the first eager operator
    of the process runs: for those who watch from the beginning. What it raises leaves the call, and it is
    asked again.
    """


@hookspec
def mycelia_recorder():
    """Called when a setting of the run recorder changes: `env_config_path`, `rdr_enable`, `rdr_mode` or
    `rdr_path`. What it raises is what the change raises, and the setting stays as it was.
    """


@hookspec
def mycelia_observers(program):
    """Return observers to attach to a compiled `program`; none leaves its fast loop untouched.

    An observer's ``after(node, outputs)`` is called after each instruction with the graph node behind it and
    copies of its results.
    """


@hookspec
def mycelia_callbacks(model):
    """Return callbacks that `model.train` and `model.eval` run after the user's."""


@hookspec(firstresult=True)
def mycelia_summary_sink(directory):
    """Return a writer for summary records into `directory`."""


@hookspec(firstresult=True)
def mycelia_communicator(config):
    """Return a `mycelia.parallel.comm.Communicator` for the launcher and devices that `config` describes."""


@hookspec
def mycelia_dashboards(app):
    """Return a list of `mycelia_insight.dashboards.Dashboard`, pages of Insight; `app` tells of the runs."""


@hookspec
def mycelia_servable_loaders():
    """Return a dict from model format to a loader, for Serving."""


@hookspec
def mycelia_compat_packages():
    """Return a dict from a package of MindSpore's family ("mindspore_serving") to ours that stands for it."""
