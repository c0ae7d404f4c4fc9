"""`Model`: training, evaluation and prediction of a network with its loss, optimizer and metrics."""

from __future__ import annotations

import itertools
import os

from mycelia.engine.base import config, errors, ignored, plugins
from mycelia.engine.communication import mode, stages
from mycelia.engine.tensors.tensor import Tensor
from mycelia.nn.cell import Cell
from mycelia.nn.metrics import Loss, Metric, get_metrics
from mycelia.nn.wrap import TrainOneStepCell, WithEvalCell, WithLossCell
from mycelia.train import data_parallel
from mycelia.train.boost_level import BOOST_MISSING, check_boost_level
from mycelia.train.callbacks.base import CallbackManager, CallbackParam, RunContext


class Model:
    """A network with what is needed to train and evaluate it.

    `network` returns predictions, or the loss itself when `loss_fn` is None. `metrics`:
    names, or a dict name -> Metric. `eval_network`: a cell that returns what metrics take, else it is made
    of network and loss; `eval_indexes`: which of its outputs are loss, prediction and label. `amp_level`,
    `keep_batchnorm_fp32` and `loss_scale_manager`: mixed precision, as `amp.build_train_network`.
    `boost_level` "O1" and "O2" are warned of: `mycelia.boost` has what leaves out work.
    """

    def __init__(
        self,
        network,
        loss_fn=None,
        optimizer=None,
        metrics=None,
        eval_network=None,
        eval_indexes=None,
        amp_level="O0",
        boost_level="O0",
        **kwargs,
    ):
        if not isinstance(network, Cell):
            raise errors.type_error("Model", f"network must be a Cell, but got {type(network).__name__}")
        unknown = set(kwargs) - {
            "keep_batchnorm_fp32",
            "loss_scale_manager",
            "boost_config_dict",
            "acc_level",
        }
        if unknown:
            raise errors.value_error("Model", f"got unexpected arguments {sorted(unknown)}")
        boost_level = kwargs.get("acc_level", boost_level)  # its older name
        check_boost_level("Model", boost_level)
        if "boost_config_dict" in kwargs:
            ignored.tell("Model", "boost_config_dict", kwargs["boost_config_dict"], BOOST_MISSING)
        self._amp_level, self._boost_level = amp_level, boost_level
        self._amp_options = {
            k: v for k, v in kwargs.items() if k in ("keep_batchnorm_fp32", "loss_scale_manager")
        }
        if optimizer is not None and not callable(optimizer):
            raise errors.type_error(
                "Model", f"optimizer must be an Optimizer, but got {type(optimizer).__name__}"
            )
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._eval_indexes = eval_indexes
        self._metric_fns: dict[str, Metric] = {} if metrics is None else get_metrics(metrics)
        self._train_network = self._build_train_network()
        self._eval_network = self._build_eval_network(eval_network)

    def _build_train_network(self):
        if self._optimizer is None:
            return self._network if self._loss_fn is None else None
        if self._amp_level == "O0" and not self._amp_options:
            network = self._network if self._loss_fn is None else WithLossCell(self._network, self._loss_fn)
            return TrainOneStepCell(network, self._optimizer)
        from mycelia.train.amp import build_train_network

        return build_train_network(
            self._network, self._optimizer, self._loss_fn, self._amp_level, self._boost_level,
            **self._amp_options,
        )  # fmt: skip

    def _build_eval_network(self, eval_network):
        if eval_network is not None:
            if self._eval_indexes is not None and (
                not isinstance(self._eval_indexes, list) or len(self._eval_indexes) != 3
            ):
                raise errors.value_error(
                    "Model", f"eval_indexes must be a list of 3 ints, but got {self._eval_indexes!r}"
                )
            return eval_network
        if self._loss_fn is None or not self._metric_fns:
            return None
        self._eval_indexes = [0, 1, 2]
        short = self._amp_level in ("O2", "O3", "auto")
        return WithEvalCell(self._network, self._loss_fn, add_cast_fp32=short)

    # ---- what users look at --------------------------------------------------------------------------------

    @property
    def train_network(self):
        """The cell that makes one training step."""
        return self._train_network

    @property
    def predict_network(self):
        """The cell that predicts."""
        return self._network

    @property
    def eval_network(self):
        """The cell that metrics are fed from."""
        return self._eval_network

    # ---- training ------------------------------------------------------------------------------------------

    def train(
        self,
        epoch: int,
        train_dataset,
        callbacks=None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train for `epoch` epochs over `train_dataset`.

        `dataset_sink_mode`: with `sink_size` > 0 an epoch is that many steps, and data go on from where they
        stopped. `initial_epoch`: epochs already done, also by the dataset: it goes on as if it had given
        them. Errors: ValueError for an empty dataset or a bad epoch.
        """
        self._fit(
            epoch, train_dataset, None, 1, callbacks, dataset_sink_mode, False, sink_size, initial_epoch
        )

    def fit(
        self,
        epoch: int,
        train_dataset,
        valid_dataset=None,
        valid_frequency=1,
        callbacks=None,
        dataset_sink_mode=False,
        valid_dataset_sink_mode=False,
        sink_size=-1,
        initial_epoch=0,
    ) -> None:
        """Train as `train` and evaluate on `valid_dataset` every `valid_frequency` epochs (or
        after the epochs listed). Callbacks then see `eval_results`: the metrics, and as "eval_loss" the mean
        loss of these batches.
        """
        self._fit(
            epoch,
            train_dataset,
            valid_dataset,
            valid_frequency,
            callbacks,
            dataset_sink_mode,
            valid_dataset_sink_mode,
            sink_size,
            initial_epoch,
        )

    def _check_epochs(self, epoch, initial_epoch) -> None:
        for name, value, least in (("epoch", epoch, 1), ("initial_epoch", initial_epoch, 0)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise errors.type_error("Model.train", f"{name} must be an int, but got {value!r}")
            if value < least:
                raise errors.value_error("Model.train", f"{name} must be at least {least}, but got {value}")
        if initial_epoch >= epoch:
            raise errors.value_error(
                "Model.train", f"initial_epoch {initial_epoch} must be less than epoch {epoch}"
            )

    def _fit(
        self,
        epoch,
        train_dataset,
        valid_dataset,
        valid_frequency,
        callbacks,
        sink,
        valid_sink,
        sink_size,
        initial_epoch,
    ):
        self._check_epochs(epoch, initial_epoch)
        together = mode.degree("Model.train") > 1 or stages.current("Model.train") is not None
        if self._train_network is None:
            raise errors.value_error("Model.train", "the model has a loss_fn but no optimizer")
        if valid_dataset is not None and not self._metric_fns:
            raise errors.value_error("Model.fit", "evaluation needs metrics; give Model(metrics=...)")
        if (
            valid_dataset is not None
            and not isinstance(valid_frequency, int)
            and not hasattr(valid_frequency, "__iter__")
        ):
            raise errors.type_error(
                "Model.fit",
                f"valid_frequency must be an int or a list of epochs, but got {valid_frequency!r}",
            )
        steps = _size_of(train_dataset, "Model.train")
        by_sink = bool(sink) and isinstance(sink_size, int) and sink_size > 0
        params = self._parameters("train", train_dataset, epoch, sink_size if by_sink else steps)
        params.valid_dataset = valid_dataset
        params.dataset_sink_mode = bool(sink)
        network = self._train_network
        network.set_train(True)
        if together:
            data_parallel.begin(network, steps)
        with CallbackManager(self._with_those_of_plugins(callbacks)) as callback:
            params.list_callback = callback.callbacks
            context = RunContext(params)
            first = _first_step(train_dataset, initial_epoch, params.batch_num)
            params.last_save_ckpt_step = params.cur_step_num = first
            callback.on_train_begin(context)
            first = params.cur_step_num  # more, where a callback has restored a state
            passes = _passes(train_dataset, first)
            seen = 0 if hasattr(train_dataset, "set_init_step") else first % steps  # which it gives again
            batches = _endless(passes) if by_sink else None
            for current in range(first // params.batch_num + 1, epoch + 1):
                if context.get_stop_requested():
                    break
                params.cur_epoch_num = current
                callback.on_train_epoch_begin(context)
                source = itertools.islice(batches if by_sink else _next_pass(passes), seen, None)
                self._train_epoch(source, params, context, callback, first % params.batch_num)
                first = seen = 0
                if valid_dataset is not None and _is_due(current, valid_frequency):
                    self._eval_in_fit(valid_dataset, callback, params)
                    network.set_train(True)
                callback.on_train_epoch_end(context)
                if "metrics" in params or "eval_results" in params:
                    params.eval_results = {}
            callback.on_train_end(context)

    def _train_epoch(self, source, params, context, callback, done: int) -> None:
        """The steps of an epoch behind the first `done`."""
        for batch in source:
            inputs = _inputs_of(batch)
            if len(inputs) != 2 and self._loss_fn is not None:
                raise (errors.type_error if len(inputs) < 2 else errors.value_error)(
                    "Model.train",
                    f"with a loss_fn a batch must have data and label, but it has {len(inputs)} column(s)",
                    hint="wrap network and loss in a Cell of your own and give Model no loss_fn",
                )
            params.cur_step_num += 1
            params.train_dataset_element = inputs
            callback.on_train_step_begin(context)
            params.net_outputs = self._train_network(*inputs)
            callback.on_train_step_end(context)
            done += 1
            if context.get_stop_requested() or done == params.batch_num:
                return
        if not done:
            raise errors.value_error("Model.train", "the dataset gave no batch")

    # ---- evaluation ----------------------------------------------------------------------------------------

    def eval(self, valid_dataset, callbacks=None, dataset_sink_mode: bool = False) -> dict:
        """The metrics over `valid_dataset`: name -> value. Errors: ValueError without metrics or data."""
        del dataset_sink_mode  # batches go to the network from here either way
        if not self._metric_fns:
            raise errors.value_error("Model.eval", "the model has no metrics; give Model(metrics=...)")
        if self._eval_network is None:
            raise errors.value_error("Model.eval", "the model has neither loss_fn nor eval_network")
        params = self._parameters("eval", valid_dataset, 1, _size_of(valid_dataset, "Model.eval"))
        params.metrics = {}
        with CallbackManager(self._with_those_of_plugins(callbacks)) as callback:
            params.list_callback = callback.callbacks
            return self._evaluate(valid_dataset, callback, params)

    def _eval_in_fit(self, valid_dataset, callback, train_params) -> None:
        params = self._parameters("eval", valid_dataset, 1, _size_of(valid_dataset, "Model.fit"))
        params.list_callback = callback.callbacks
        loss = None if self._eval_indexes is None else Loss()
        train_params.metrics = self._evaluate(valid_dataset, callback, params, loss)
        train_params.eval_results = params.eval_results

    def _evaluate(self, dataset, callback, params, loss: Loss | None = None) -> dict:
        """The metrics; `params.eval_results` has what `loss` comes to besides, as "eval_loss"."""
        for metric in self._metric_fns.values():
            metric.clear()
        self._eval_network.set_train(False)
        context = RunContext(params)
        callback.on_eval_begin(context)
        callback.on_eval_epoch_begin(context)
        for batch in _batches(dataset, params):
            inputs = _inputs_of(batch)
            params.cur_step_num += 1
            params.eval_dataset_element = inputs
            callback.on_eval_step_begin(context)
            outputs = self._eval_network(*inputs)
            params.net_outputs = outputs
            callback.on_eval_step_end(context)
            self._update_metrics(outputs)
            if loss is not None:
                loss.update(outputs[self._eval_indexes[0]])
            if context.get_stop_requested():
                break
        callback.on_eval_epoch_end(context)
        params.metrics = {name: m.eval() for name, m in self._metric_fns.items()}
        params.eval_results = params.metrics if loss is None else {**params.metrics, "eval_loss": loss.eval()}
        callback.on_eval_end(context)
        return params.metrics

    def _with_those_of_plugins(self, callbacks):
        added = [c for found in plugins.manager().hook.mycelia_callbacks(model=self) for c in found or ()]
        if not added:
            return callbacks
        own = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
        return [*own, *added]

    def _update_metrics(self, outputs) -> None:
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        for metric in self._metric_fns.values():
            if self._eval_indexes is None:
                metric.update(*outputs)
            elif isinstance(metric, Loss):
                metric.update(outputs[self._eval_indexes[0]])
            else:
                metric.update(outputs[self._eval_indexes[1]], outputs[self._eval_indexes[2]])

    # ---- prediction ----------------------------------------------------------------------------------------

    @ignored.arguments(config="the network runs as it is")
    def predict(self, *predict_data, backend=None, config=None):
        """The network's output for Tensors or nested lists of them, in inference mode.

        `backend`: "lite" or None, which are the same here; `config` has no effect.
        Errors: TypeError, ValueError.
        """
        if backend not in ("lite", None):
            raise errors.one_of(backend, ["lite", None], subject="Model.predict", what="backend")
        for value in predict_data:
            if not isinstance(value, (Tensor, tuple, list, dict)):
                raise errors.type_error(
                    "Model.predict", f"predict_data must be Tensors, but got {type(value).__name__}"
                )
        self._network.set_train(False)
        return self._network(*predict_data)

    def build(self, train_dataset=None, valid_dataset=None, sink_size=-1, epoch=1, sink_mode=True) -> None:
        """Compile the training or evaluation network for the first batch of the given datasets, in graph
        mode."""
        del sink_size, epoch, sink_mode  # what is compiled is one step
        if config.get("mode") != config.GRAPH_MODE:
            return
        for dataset, network in ((train_dataset, self._train_network), (valid_dataset, self._eval_network)):
            if dataset is not None and network is not None:
                batch = next(iter(dataset.create_tuple_iterator(num_epochs=1)))
                network.compile(*batch)

    def infer_train_layout(self, train_dataset, dataset_sink_mode=True, sink_size=-1):
        """How Parameters would lie on several devices: not there, the Ascend backend would say."""
        raise self._one_device("infer_train_layout")

    def infer_predict_layout(self, *predict_data, skip_backend_compile=False):
        """How Parameters would lie on several devices: not there, the Ascend backend would say."""
        raise self._one_device("infer_predict_layout")

    @staticmethod
    def _one_device(method: str):
        return errors.runtime_error(
            f"Model.{method}", "one process has one device; layouts over several need an Ascend backend"
        )

    def _parameters(self, mode: str, dataset, epochs: int, steps: int) -> CallbackParam:
        return CallbackParam(
            train_network=self._train_network,
            eval_network=self._eval_network,
            epoch_num=epochs,
            batch_num=steps,
            mode=mode,
            network=self._network,
            loss_fn=self._loss_fn,
            optimizer=self._optimizer,
            parallel_mode="stand_alone",
            device_number=1,
            train_dataset=dataset if mode == "train" else None,
            valid_dataset=dataset if mode == "eval" else None,
            cur_epoch_num=0,
            cur_step_num=0,
            net_outputs=None,
            list_callback=[],
            dataset_sink_mode=False,
            last_save_ckpt_step=None,
            latest_ckpt_file=None,
            rank_id=0,
            process_id=os.getpid(),
            metrics=self._metric_fns,
            eval_results={},
        )


def _size_of(dataset, owner: str) -> int:
    if not hasattr(dataset, "get_dataset_size"):
        raise errors.type_error(
            owner, f"the dataset must be a mycelia.dataset object, but got {type(dataset).__name__}"
        )
    size = dataset.get_dataset_size()
    if not size:
        raise errors.value_error(
            owner,
            "the dataset is empty",
            hint="is the batch size larger than the data with drop_remainder=True?",
        )
    return size


def _batches(dataset, params):
    return dataset.create_tuple_iterator(num_epochs=1)


def _next_pass(passes):
    """The next epoch of an iterator, also where the epoch before was left before its end."""
    if hasattr(passes, "next_epoch"):
        return passes.next_epoch()
    batches = iter(passes)
    if batches is passes and hasattr(passes, "reset"):
        passes.reset()  # a dataset of the user's that is its own iterator
    return batches


def _first_step(dataset, initial_epoch: int, batches: int) -> int:
    """How many steps are done: those of `initial_epoch` epochs, and what `set_init_step` says of the next.

    Errors: ValueError if that says more than one epoch more.
    """
    step = initial_epoch * batches
    asked = dataset.get_init_step() if initial_epoch and hasattr(dataset, "get_init_step") else 0
    if asked >= step + batches:
        raise errors.value_error(
            "Model.train",
            f"set_init_step({asked}) of the dataset lies in epoch {asked // batches + 1}, but initial_epoch "
            f"is {initial_epoch}: with {batches} steps an epoch the first is epoch {initial_epoch + 1}",
        )
    return max(step, asked)


def _passes(dataset, step: int):
    """An iterator over all epochs of `dataset`, from a step over all epochs on."""
    if not step or not hasattr(dataset, "set_init_step"):
        return dataset.create_tuple_iterator()
    before = dataset.get_init_step()
    dataset.set_init_step(step)
    try:
        return dataset.create_tuple_iterator()
    finally:
        dataset.set_init_step(before)


def _endless(passes):
    while True:
        yield from iter(passes)


def _inputs_of(batch) -> tuple:
    return tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)


def _is_due(epoch: int, frequency) -> bool:
    if isinstance(frequency, int):
        return epoch % frequency == 0
    return epoch in frequency


__all__ = ["Model"]
