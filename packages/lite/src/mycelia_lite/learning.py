"""Models that learn on the device: steps, rates, gradients, and files of what they learned."""

from __future__ import annotations

import ctypes
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mycelia_lite import runtime
from mycelia_lite.enums import ModelType, QuantizationType
from mycelia_lite.observed import CallBack, Observed
from mycelia_lite.tensor import Tensor, handles

if TYPE_CHECKING:
    from mycelia_lite.train import Metric, TrainCallBack


class Learning:
    """What a model of a file that was converted with trainModel=true does beside answering.

    It answers first; while it trains (`set_train_mode`), its outputs are the losses and `run_step` learns.
    All methods are a RuntimeError with the code -7 for a model for inference.
    """

    _handle: int

    def _take_tensors(self) -> None:
        raise NotImplementedError  # of the Model

    # ---- steps

    def set_train_mode(self, train: bool) -> None:
        """Whether runs are steps of the training, or answers."""
        if not isinstance(train, bool):
            raise TypeError(f"train must be a bool, but got {type(train).__name__}")
        runtime.check(runtime.library().MSModelSetTrainMode(self._handle, train))
        self._take_tensors()

    def get_train_mode(self) -> bool:
        """Whether runs are steps of the training; False for a model for inference."""
        return runtime.library().MSModelGetTrainMode(self._handle)

    def run_step(self, before: CallBack | None = None, after: CallBack | None = None) -> list[Tensor]:
        """A step of the training, or an answer, on what the inputs hold; the losses, or the outputs.

        `before` and `after` are called around each node, see `predict`; one that ends a step leaves
        weights as far as they were updated. Errors: RuntimeError, what a callback raises.
        """
        with Observed(before, after) as calls:
            status = runtime.library().MSRunStepObserved(self._handle, *calls.native, None)
        runtime.check(status)
        return self.get_outputs()

    def get_outputs(self) -> list[Tensor]:
        raise NotImplementedError  # of the Model

    def get_learning_rate(self) -> float:
        """The learning rate.  Errors: RuntimeError if it follows a schedule that is part of the model."""
        rate = runtime.library().MSModelGetLearningRate(self._handle)
        if math.isnan(rate):
            raise RuntimeError(runtime.reason())
        return rate

    def set_learning_rate(self, learning_rate: float) -> None:
        """Another rate, 0 or more, from the next step on.  Errors: as for `get_learning_rate`; TypeError."""
        number = _number("learning_rate", learning_rate)
        runtime.check(runtime.library().MSModelSetLearningRate(self._handle, number))

    def setup_virtual_batch(
        self, virtual_batch_multiplier: int, learning_rate: float = -1.0, momentum: float = -1.0
    ) -> None:
        """Add the gradients of so many small steps before each step of the optimizer.

        Its rate is `learning_rate`, below 0 the present one divided by the multiplier; `momentum` below 0
        stays. A multiplier of 1 ends that, and brings back rate and momentum.

        Errors: TypeError, RuntimeError.
        """
        if isinstance(virtual_batch_multiplier, bool) or not isinstance(virtual_batch_multiplier, int):
            raise TypeError(f"virtual_batch_multiplier must be an int, but got {virtual_batch_multiplier!r}")
        numbers = _number("learning_rate", learning_rate), _number("momentum", momentum)
        status = runtime.library().MSModelSetupVirtualBatch(self._handle, virtual_batch_multiplier, *numbers)
        runtime.check(status)

    # ---- what is learned

    def get_feature_maps(self) -> list[Tensor]:
        """Weights and statistics by name: views of what the next run uses."""
        return self._tensors(runtime.library().MSModelGetWeights(self._handle))

    def get_trainable_params(self) -> list[Tensor]:
        """The weights that the optimizer changes; see `get_feature_maps`."""
        return self._tensors(runtime.library().MSModelGetTrainableParams(self._handle))

    def get_optimizer_params(self) -> list[Tensor]:
        """States and numbers of the optimizer, such as moments and the rate; see `get_feature_maps`."""
        return self._tensors(runtime.library().MSModelGetOptimizerParams(self._handle))

    def update_feature_maps(self, tensors: Sequence[Tensor]) -> None:
        """Other elements for weights, statistics and states, by name; all of them or none.

        Errors: TypeError; RuntimeError for another name, dtype or shape.
        """
        runtime.check(runtime.library().MSModelUpdateWeights(self._handle, handles(tensors, "tensors")))

    set_optimizer_params = update_feature_maps

    def get_gradients(self) -> list[Tensor]:
        """What the optimizer gets, by the name of the weight; kept from the next step on.

        Errors: RuntimeError if the step was converted as a whole.
        """
        return self._tensors(runtime.library().MSModelGetGradients(self._handle))

    def apply_gradients(self, gradients: Sequence[Tensor]) -> None:
        """The optimizer's step with these gradients, one a weight.  Errors: TypeError, RuntimeError."""
        runtime.check(runtime.library().MSModelApplyGradients(self._handle, handles(gradients, "gradients")))

    def _tensors(self, array: runtime.TensorArray) -> list[Tensor]:
        found = [Tensor._of(h, self) for h in array.list()]
        if not found:
            raise RuntimeError(runtime.reason())
        return found

    # ---- files

    def export(
        self,
        model_file: str | os.PathLike,
        quantization_type: QuantizationType = QuantizationType.NO_QUANT,
        export_inference_only: bool = True,
        output_tensor_name: Sequence[str] = (),
        bit_num: int = 8,
    ) -> None:
        """Write a model for inference, or one to go on training with all that resuming needs.

        The path holds what it held or the new file, whole, whenever the process or the machine stops.
        WEIGHT_QUANT stores the weights of a model for inference in `bit_num` bits: the converter does that.
        `output_tensor_name`: all outputs in order, or none.

        Errors: TypeError; NotImplementedError for FULL_QUANT; RuntimeError, OSError.
        """
        if not isinstance(quantization_type, QuantizationType):
            raise TypeError(f"quantization_type must be a QuantizationType, but got {quantization_type!r}")
        path = os.fspath(model_file)
        if quantization_type is QuantizationType.NO_QUANT:
            self._write(path, export_inference_only, output_tensor_name)
            return
        if quantization_type is not QuantizationType.WEIGHT_QUANT or not export_inference_only:
            raise NotImplementedError(
                f"quantization_type={quantization_type.name}: weights of models for inference are quantized, "
                "neither activations nor models to train on"
            )
        from mycelia_lite import Converter, FmkType

        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "model.ms")
            self._write(plain, True, output_tensor_name)
            converter = Converter()
            converter.set_config_info(
                "common_quant_param", {"quant_type": "WEIGHT_QUANT", "bit_num": str(bit_num)}
            )
            converter.convert(FmkType.MSLITE, plain, path)

    def _write(self, path: str, for_inference: bool, names: Sequence[str]) -> None:
        texts = [name.encode() for name in names]
        array = (ctypes.c_char_p * len(texts))(*texts)
        what = (os.fsencode(path), QuantizationType.NO_QUANT, bool(for_inference), array, len(texts))
        runtime.check(runtime.library().MSExportModel(self._handle, ModelType.MINDIR_LITE, *what))

    # ---- loops

    def train(self, epochs: int, dataset: Iterable, callbacks: Sequence[TrainCallBack] = ()) -> list[float]:
        """Steps over the batches of `dataset`, each a tuple of arrays in the order of the inputs, so many
        times; the mean loss of each epoch. Batches of other shapes resize the model.

        Errors: TypeError, ValueError for what is no batch, RuntimeError.
        """
        from mycelia_lite.train import fit

        return fit(self, epochs, dataset, callbacks)

    def evaluate(self, dataset: Iterable, metrics: Sequence[Metric]) -> dict[str, float]:
        """Answers to the batches of `dataset`, and what each metric makes of them and the last array of each
        batch, by the metric's name. Errors: as for `train`.
        """
        from mycelia_lite.train import measure

        return measure(self, dataset, metrics)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} must be a number, but got {value!r}")
    return float(value)
