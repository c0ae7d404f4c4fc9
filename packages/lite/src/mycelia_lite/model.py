"""Models that run: MindSpore Lite's Python interface over the C library."""

from __future__ import annotations

import ctypes
import operator
import os
from collections.abc import Sequence

from mycelia_lite import runtime
from mycelia_lite.context import Context
from mycelia_lite.enums import ModelGroupFlag, ModelType
from mycelia_lite.learning import Learning
from mycelia_lite.observed import CallBack, Observed
from mycelia_lite.tensor import Tensor, handles, sizes_of


class Model(Learning):
    """A `.ms` file that can be run, and trained if it was converted for that."""

    def __init__(self) -> None:
        self._handle = runtime.library().MSModelCreate()
        self._take_tensors()
        self._group: dict[str, Model] | None = None

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            runtime.library().MSModelDestroy(ctypes.byref(runtime.Handle(self._handle)))

    def build_from_file(
        self,
        model_path: str | os.PathLike,
        model_type: ModelType = ModelType.MINDIR_LITE,
        context: Context | None = None,
        config_path: str = "",
        dec_key: bytes = b"",
        dec_mode: str = "AES-GCM",
    ) -> None:
        """Load a model and prepare it to run.

        `dec_key`: 16, 24 or 32 bytes, of an encrypted file; `dec_mode`: its cipher, AES-GCM.

        `config_path`: a file with sections, see `update_config`.

        Errors: TypeError for arguments of other types, RuntimeError with the code and the reason if the file
        or the configuration cannot be loaded.
        """
        if not isinstance(model_path, (str, os.PathLike)):
            raise TypeError(f"model_path must be a path, but got {type(model_path).__name__}")
        if model_type is not None and not isinstance(model_type, ModelType):
            raise TypeError(f"model_type must be a ModelType, but got {type(model_type).__name__}")
        if context is not None and not isinstance(context, Context):
            raise TypeError(f"context must be a Context, but got {type(context).__name__}")
        if not isinstance(dec_key, bytes):
            raise TypeError(f"dec_key must be bytes, but got {type(dec_key).__name__}")
        if not isinstance(dec_mode, str):
            raise TypeError(f"dec_mode must be a str, but got {type(dec_mode).__name__}")
        library = runtime.library()
        if self._group is not None and not dec_key:
            path = os.path.realpath(model_path)
            if path in self._group:
                self.build_from_model(self._group[path], context)
                return
            self._group[path] = self
        if config_path:
            runtime.check(library.MSModelLoadConfig(self._handle, os.fsencode(config_path)))
        kind = ModelType.MINDIR_LITE if model_type is None else model_type
        with (context or Context()).native() as native:
            what = (self._handle, os.fsencode(model_path), kind, native)
            if dec_key:
                runtime.check(
                    library.MSModelBuildFromEncryptedFile(*what, dec_key, len(dec_key), dec_mode.encode())
                )
            else:
                runtime.check(library.MSModelBuildFromFile(*what))
        self._take_tensors()

    def build_from_model(self, model: Model, context: Context | None = None) -> None:
        """Prepare the file of a built model to run once more: both share weights and packed constants.

        Errors: TypeError, RuntimeError.
        """
        if not isinstance(model, Model):
            raise TypeError(f"model must be a Model, but got {type(model).__name__}")
        with (context or Context()).native() as native:
            runtime.check(runtime.library().MSModelBuildFromModel(self._handle, model._handle, native))
        self._take_tensors()

    def _take_tensors(self) -> None:
        library = runtime.library()
        self._inputs = [Tensor._of(h, self) for h in library.MSModelGetInputs(self._handle).list()]
        self._outputs = [Tensor._of(h, self) for h in library.MSModelGetOutputs(self._handle).list()]
        self._run = runtime.bound("MSModelRun", self._handle)  # on the model's own inputs

    def update_config(self, section: str, config: dict[str, str]) -> None:
        """Settings before the model is built: `[execution_plan]` has nodes with data_type:float16 or
        data_type:float32.  Errors: RuntimeError for what is not known.
        """
        for key, value in config.items():
            texts = [text.encode() for text in (section, key, value)]
            runtime.check(runtime.library().MSModelUpdateConfig(self._handle, *texts))

    def get_inputs(self) -> list[Tensor]:
        """The inputs, which belong to the model: what is set in them is what `predict` reads."""
        return list(self._inputs)

    def get_outputs(self) -> list[Tensor]:
        """The outputs, which belong to the model; they have data once it has run."""
        return list(self._outputs)

    def resize(self, inputs: Sequence[Tensor], dims: Sequence[Sequence[int]]) -> None:
        """Prepare for other shapes `dims` of the inputs.

        Errors: TypeError, ValueError for sizes beyond 64 bits, RuntimeError if the model cannot have them;
        then it is as it was.
        """
        array = handles(inputs, "inputs")
        if not hasattr(dims, "__len__"):
            raise TypeError(f"dims must be a list of shapes, but got {type(dims).__name__}")
        shapes = (runtime.ShapeInfo * len(dims))()
        for i, info in enumerate(shapes):
            sizes = sizes_of(dims[i], f"dims[{i}]")
            info.count = len(sizes)
            info.sizes[: min(len(sizes), 32)] = sizes[:32]
        runtime.check(runtime.library().MSModelResize(self._handle, array, shapes, len(dims)))

    def predict(
        self,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor] | None = None,
        before: CallBack | None = None,
        after: CallBack | None = None,
    ) -> list[Tensor]:
        """Run the model on `inputs`, its own ones or others like them; returns its outputs.

        `outputs`: tensors that get copies of them.  `before` and `after` are called around each node with its
        inputs, its outputs, its name and its type; the tensors hold for the call, and what a callback returns
        as false ends the run.

        Errors: TypeError, RuntimeError for inputs that do not fit, for what a kernel refuses, and if the
        model is running; what a callback raises.
        """
        own = self._inputs
        plain = before is after is None and type(inputs) is list and len(inputs) == len(own)
        if plain and (inputs[0] is own[0] if len(own) == 1 else all(map(operator.is_, inputs, own))):
            run = self._run  # what is no method is found faster so; small models notice
            status = run()
        else:
            array = handles(inputs, "inputs")
            with Observed(before, after) as calls:
                status = runtime.library().MSModelPredictObserved(
                    self._handle, array, None, *calls.native, None
                )
        if status:
            runtime.check(status)
        if outputs:
            for made, given in zip(self._outputs, outputs):
                given.set_data_from_numpy(made.get_data_to_numpy())
        return self._outputs.copy()

    def get_outputs_by_node_name(self, name: str) -> list[Tensor]:
        """What a node inside of the model computes; they are kept from the next run on.

        Errors: RuntimeError if there is no such node.
        """
        found = runtime.library().MSModelGetOutputsByNodeName(self._handle, name.encode()).list()
        if not found:
            raise RuntimeError(runtime.reason())
        return [Tensor._of(h, self) for h in found]

    def update_weights(self, weights: Sequence[Tensor]) -> None:
        """Give weights other elements: tensors with the names, types and shapes of the model's.

        Errors: TypeError, RuntimeError for a weight that the model has not; then it is as it was.
        """
        runtime.check(runtime.library().MSModelUpdateWeights(self._handle, handles(weights, "weights")))

    def get_model_info(self, key: str) -> str:
        """A fact about the built model: "precision", "isa", "arena_bytes",
        "memory_plan", "workspace_bytes".

        Errors: TypeError, RuntimeError for another key.
        """
        if not isinstance(key, str):
            raise TypeError(f"key must be a text, but got {type(key).__name__}")
        found = runtime.library().MSModelGetInfo(self._handle, key.encode())
        if found is None:
            raise RuntimeError(runtime.reason())
        return runtime.text(found)

    def time_runs(self, warm_up: int, loops: int) -> list[float]:
        """Milliseconds of each of `loops` runs on what the inputs hold, after `warm_up` others."""
        taken = (ctypes.c_double * loops)()
        runtime.check(runtime.library().MSModelTimeRuns(self._handle, warm_up, loops, taken))
        return list(taken)

    def profile(self, loops: int) -> list[tuple[str, str, float, int]]:
        """(name, type, milliseconds of all runs, calls) of each node in `loops` runs."""
        library, count = runtime.library(), ctypes.c_size_t()
        runtime.check(library.MSModelProfile(self._handle, 0, None, ctypes.byref(count)))
        nodes = (runtime.NodeProfile * count.value)()
        runtime.check(library.MSModelProfile(self._handle, loops, nodes, ctypes.byref(count)))
        return [
            (runtime.text(n.node_name), runtime.text(n.node_type), n.milliseconds, n.calls) for n in nodes
        ]


class ModelGroup:
    """Models that share memory.

    SHARE_WEIGHT: those built from the same file have weights and packed constants once. SHARE_WORKSPACE: all
    compute in the same memory, as large as the largest needs, and so run one at a time: a call waits for that
    of another thread, and is a RuntimeError in a callback of another's run.
    """

    def __init__(self, flag: ModelGroupFlag = ModelGroupFlag.SHARE_WEIGHT) -> None:
        if not isinstance(flag, ModelGroupFlag):
            raise TypeError(f"flag must be a ModelGroupFlag, but got {type(flag).__name__}")
        self._flag = flag
        self._built: dict[str, Model] = {}
        self._first: Model | None = None

    def add_model(self, models: Sequence[Model]) -> None:
        """Models that are not built yet.  Errors: TypeError; RuntimeError for one that is built."""
        for i, model in enumerate(models):
            if not isinstance(model, Model):
                raise TypeError(f"models[{i}] must be a Model, but got {type(model).__name__}")
            if self._flag is ModelGroupFlag.SHARE_WEIGHT:
                model._group = self._built
            elif self._first is None:
                self._first = model
            else:
                library = runtime.library()
                runtime.check(library.MSModelShareWorkspace(model._handle, self._first._handle))
