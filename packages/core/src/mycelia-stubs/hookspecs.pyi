# Written by tools/gen_stubs.py.

__all__ = [
    "HOOK_API", "mycelia_backends", "mycelia_begin", "mycelia_callbacks", "mycelia_communicator",
    "mycelia_compat_packages", "mycelia_dashboards", "mycelia_dataset_cache", "mycelia_exporters",
    "mycelia_importers", "mycelia_kernel_library", "mycelia_kernels", "mycelia_observers", "mycelia_ops",
    "mycelia_passes", "mycelia_recorder", "mycelia_servable_loaders", "mycelia_summary_sink",
]

HOOK_API: int

def mycelia_backends() -> None:
    """Return a list of `mycelia.backends.base.Backend` objects, the devices that this plugin brings."""

def mycelia_begin(compiling) -> None:
    """Called once before the first function is compiled (`compiling`), and once when the first eager operator of the process runs: for those who watch from the beginning. What it raises leaves the call, and it is asked again."""

def mycelia_callbacks(model) -> None:
    """Return callbacks that `model.train` and `model.eval` run after the user's."""

def mycelia_communicator(config) -> None:
    """Return a `mycelia.parallel.comm.Communicator` for the launcher and devices that `config` describes."""

def mycelia_compat_packages() -> None:
    """Return a dict from a package of MindSpore's family ("mindspore_serving") to ours that stands for it."""

def mycelia_dashboards(app) -> None:
    """Return a list of `mycelia_insight.dashboards.Dashboard`, pages of Insight; `app` tells of the runs."""

def mycelia_dataset_cache(config) -> None:
    """Return a client of the dataset cache that `config`, a `DatasetCache`, describes."""

def mycelia_exporters() -> None:
    """Return a dict from format name ("MINDIR", "ONNX", ...) to an export function."""

def mycelia_importers() -> None:
    """Return a dict from format name to an import function."""

def mycelia_kernel_library(target) -> None:
    """Return the kernel library for `target` ("cpu", "micro"): table capsule, source and CMake directory."""

def mycelia_kernels(backend_name) -> None:
    """Return extra kernels for an existing backend: a dict (op, dtypes) -> kernel, or a table capsule."""

def mycelia_observers(program) -> None:
    """Return observers to attach to a compiled `program`; none leaves its fast loop untouched."""

def mycelia_ops() -> None:
    """Return a list of modules (names or objects) to import because they define ops."""

def mycelia_passes(pipeline, stage, backend) -> None:
    """Append or insert compile passes: `pipeline` is the list of one `stage` ("optimize", "lower"), to be changed in place."""

def mycelia_recorder() -> None:
    """Called when a setting of the run recorder changes: `env_config_path`, `rdr_enable`, `rdr_mode` or `rdr_path`. What it raises is what the change raises, and the setting stays as it was."""

def mycelia_servable_loaders() -> None:
    """Return a dict from model format to a loader, for Serving."""

def mycelia_summary_sink(directory) -> None:
    """Return a writer for summary records into `directory`."""
