"""`SummaryCollector`: records what is worth seeing of a training without code in the network."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from time import monotonic

import numpy as np

from mycelia.engine.base import errors, ignored, log
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.io.checkpoint import save_checkpoint, wait_for_saves
from mycelia.io.files import write_text
from mycelia.nn.cell import Cell
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.train.callbacks.base import Callback
from mycelia.train.callbacks.checkpoint import ModelCheckpoint
from mycelia.train.callbacks.monitor import loss_value
from mycelia.train.summary import environment
from mycelia.train.summary.graph import graph_message, graph_of
from mycelia.train.summary.lineage import DatasetGraph, EvaluationLineage, TrainLineage, UserDefinedInfo
from mycelia.train.summary.node_measurements import NodeRecorder
from mycelia.train.summary.summary_record import SummaryRecord, check_export_options, make_directory
from mycelia.train.summary.system import SystemMonitor
from mycelia.train.summary.updates import Updates

_SWITCHES = (
    "collect_metric", "collect_graph", "collect_train_lineage", "collect_eval_lineage",
    "collect_input_data", "collect_dataset_graph", "collect_environment", "collect_system",
    "collect_node_times", "collect_nonfinite_nodes", "collect_update_ratio",
    "collect_artifacts",
)  # fmt: skip
_LANDSCAPE = {
    "landscape_size": 40,
    "unit": "step",
    "num_samples": 2048,
    "create_landscape": {"train": True, "result": True},
    "intervals": [list(range(1, 10)), list(range(10, 20))],
}
_DEFAULTS = {**dict.fromkeys(_SWITCHES, True), "histogram_regular": None, "collect_landscape": None}
_DEFAULTS["collect_environment"] = False  # a command line may hold secrets that nothing tells of
_DEFAULTS["collect_nonfinite_nodes"] = False  # every operator's results are looked at
_DEFAULTS["collect_update_ratio"] = False  # parameters are copied before each step that is recorded
_HYPER_CONFIG, _HYPER_CONFIG_MOST = "MINDINSIGHT_HYPER_CONFIG", 100_000
_HISTOGRAMS = 5  # parameters that are shown when none is named
_TENSOR_STEPS = 20  # of a run: tensors are large
_OWNER = "SummaryCollector"
_Item = tuple[str, str, "float | np.ndarray"]  # tag, plugin, content


def _typed(name: str, value, *kinds: type) -> None:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(k.__name__ for k in kinds)
        raise errors.type_error(_OWNER, f"{name} must be a {wanted}, but got {value!r:.60}")


def _count(name: str, value) -> None:
    _typed(name, value, int)
    if value <= 0:
        raise errors.value_error(_OWNER, f"{name} must be positive, but got {value}")


def _known(name: str, given: dict, keys: dict) -> None:
    unknown = set(given) - set(keys)
    if unknown:
        raise errors.value_error(
            _OWNER, f"the keys {unknown} of `{name}` are unsupported", hint=f"there are {', '.join(keys)}"
        )


def check_landscape(given: dict) -> dict:
    """Options of a loss landscape, completed by defaults. Errors: TypeError, ValueError."""
    _typed("collect_landscape", given, dict)
    _known("collect_landscape", given, _LANDSCAPE)
    full = {**_LANDSCAPE, **given}
    _typed("landscape_size", full["landscape_size"], int)
    if not 3 <= full["landscape_size"] <= 256:
        raise errors.value_error(
            _OWNER, f"landscape_size must be within 3 and 256, but got {full['landscape_size']}"
        )
    _typed("unit", full["unit"], str)
    if full["unit"] not in ("step", "epoch"):
        raise errors.one_of(full["unit"], ["step", "epoch"], subject=_OWNER, what="unit")
    _typed("num_samples", full["num_samples"], int)
    _typed("create_landscape", full["create_landscape"], dict)
    for name, wanted in full["create_landscape"].items():
        if name not in ("train", "result"):
            raise errors.one_of(name, ["train", "result"], subject=_OWNER, what="key of create_landscape")
        _typed(name, wanted, bool)
    _typed("intervals", full["intervals"], list)
    for interval in full["intervals"]:
        _typed("each of the intervals", interval, list)
        if len(interval) < 3:
            raise errors.value_error(_OWNER, f"an interval needs three members, but got {interval}")
        for member in interval:
            _typed("a member of an interval", member, int)
    return full


def _specified(given, keep_default: bool) -> dict:
    if given is not None:
        _typed("collect_specified_data", given, dict)
        for name, value in given.items():
            _typed("a key of collect_specified_data", name, str)
            if name in _SWITCHES:
                _typed(name, value, bool)
        _known("collect_specified_data", given, _DEFAULTS)
        regular = given.get("histogram_regular")
        _typed("histogram_regular", regular, str, type(None))
        try:
            re.compile(regular or "")
        except re.error as e:
            text = f"For `collect_specified_data`, the value of `histogram_regular` is no pattern: {e}"
            raise errors.value_error(_OWNER, text) from None
    chosen = {**(_DEFAULTS if keep_default else {}), **(given or {})}
    if chosen.get("collect_landscape") is not None:
        chosen["collect_landscape"] = check_landscape(chosen["collect_landscape"])
    return chosen


def _custom_lineage(given) -> dict:
    """The custom lineage data, with what the environment adds."""
    if given is not None:
        _typed("custom_lineage_data", given, dict)
    entries: dict = {}
    config = os.environ.get(_HYPER_CONFIG, "")
    if config and len(config) <= _HYPER_CONFIG_MOST:
        try:
            entries.update(json.loads(config).get("custom_lineage_data") or {})
        except (ValueError, AttributeError) as e:
            log.logger(__name__).warning("%s is ignored: %s", _HYPER_CONFIG, e)
    entries.update(given or {})
    for name, value in entries.items():
        _typed("a key of custom_lineage_data", name, str)
        _typed(f"custom_lineage_data['{name}']", value, int, float, str, bool)
    return entries


class SummaryCollector(Callback):
    """Records loss, input images, histograms of parameters, values of summary operators and lineage.

    `summary_dir`: directory of the run; `collect_freq`: steps between two records (epochs in sink mode);
    `collect_specified_data`: what to collect, with `keep_default_action` in addition to the defaults;
    `custom_lineage_data`: name -> int, float or text; `collect_tensor_freq`: tensors of operators are
    recorded at the first step and at those that it divides, else at about 20 of a run; `max_file_size`,
    `export_options`: as in SummaryRecord.
    `collect_system`, on unless `collect_specified_data` or `keep_default_action` say otherwise, records the
    use of processors, memory, disk, network and NVIDIA's GPUs under `system/`, at most every five seconds.
    `collect_node_times`, on likewise, times what the nodes of the compiled graph cost in ten steps after the
    first; `collect_nonfinite_nodes`, off unless asked for, notes nodes that make NaN or infinities in any
    step, which takes some percent of a training. Both go into ``node_measurements.*.json`` of the run.
    `collect_artifacts`, as much on, lists the data and checkpoints that the run was made of and the files
    that it makes in `mycelia-artifacts.jsonl`, with their SHA-256.
    `collect_update_ratio`, off unless asked for, records of each parameter of the optimizer that
    `histogram_regular` names (of all without one), at each step that is recorded, the norm
    `weight_norm/NAME` before the step and `update_ratio/NAME`, |change| / |weight| unless that is 0.
    The checkpoints of a loss landscape are saved if `collect_specified_data` has `collect_landscape`, a dict
    of its options, {} for the defaults; MindSpore saves them unasked.
    Errors: TypeError and ValueError for bad arguments, ValueError for two collectors in a run.
    """

    _DEFAULT_SPECIFIED_DATA = _DEFAULTS
    _entered: SummaryCollector | None = None  # the one that records now

    @ignored.arguments(num_process="records are written where they are made")
    def __init__(
        self,
        summary_dir,
        collect_freq=10,
        num_process=32,
        collect_specified_data=None,
        keep_default_action=True,
        custom_lineage_data=None,
        collect_tensor_freq=None,
        max_file_size=None,
        export_options=None,
    ):
        super().__init__()
        self._summary_dir = make_directory(summary_dir, "summary_dir")
        _count("collect_freq", collect_freq)
        for name, value in (("collect_tensor_freq", collect_tensor_freq), ("max_file_size", max_file_size)):
            if value is not None:
                _count(name, value)
        _typed("keep_default_action", keep_default_action, bool)
        self._collect_freq, self._tensor_freq = collect_freq, collect_tensor_freq
        self._max_file_size, self._export_options = max_file_size, check_export_options(export_options)
        self._collect_specified_data = _specified(collect_specified_data, keep_default_action)
        self._custom = _custom_lineage(custom_lineage_data)
        if self._collect_specified_data.get("collect_environment"):
            self._custom = {**environment.facts(), **self._custom}
        self._landscape = self._collect_specified_data.get("collect_landscape")
        self._ckpt_dir = os.path.join(self._summary_dir, "ckpt_dir")
        if self._landscape:
            os.makedirs(self._ckpt_dir, exist_ok=True)
        self._ckpt_files: dict[str, str] = {}
        self._system: SystemMonitor | None = None
        self._system_due = math.inf  # when it has new readings, by the monotonic clock
        self._shown: list[tuple[str, Parameter]] | None = None  # those whose histograms are recorded, by tag
        self._record: SummaryRecord | None = None
        self._started = False
        self._first = self._is_parse_loss_success = True
        self._is_seldom = False  # whether only steps that are due are of use
        self._nodes: NodeRecorder | None = None
        self._updates: Updates | None = None
        self._network: Cell | None = None  # that trains
        self._tensor_steps = range(0)

    def __enter__(self):
        if SummaryCollector._entered is not None:
            raise _second_collector()
        self._record = SummaryRecord(
            self._summary_dir,
            max_file_size=self._max_file_size,
            export_options=self._export_options,
            artifacts=bool(self._collect_specified_data.get("collect_artifacts")),
        )
        self._first = True
        SummaryCollector._entered = self
        return self

    def __exit__(self, *err):
        SummaryCollector._entered = None
        self._end_nodes()  # an error ended the training
        self._record.close(err[0] if err else None)

    # ---- events --------------------------------------------------------------------------------------------

    def begin(self, run_context):
        params = run_context.original_args()
        self._check_callbacks(params)
        if params.mode not in ("train", "eval"):
            raise errors.one_of(params.mode, ["train", "eval"], subject=_OWNER, what="mode")
        self._record.set_mode(params.mode)
        self._shown = None
        if params.mode == "train" and self._collect_specified_data.get("collect_system"):
            self._system = SystemMonitor(self._summary_dir)
            self._system_due = self._system.due
        self._is_seldom = False
        if params.mode == "train":
            self._begin_nodes(params)
            self._updates = self._watched_updates(params)
        else:
            self._list_artifacts(params, params.eval_network, params.valid_dataset)

    def step_begin(self, run_context):
        if self._updates is None:
            return
        params = run_context.original_args()
        count, left = params["cur_step_num"], 0
        if params["dataset_sink_mode"]:  # an epoch is recorded with its last step
            count, left = divmod(count, params["batch_num"])
        if not left and (self._first or count % self._collect_freq == 0):
            self._updates.begin()

    def step_end(self, run_context):
        params = run_context.original_args()
        # Most steps end here, and cost next to nothing: keys of the dict are found sooner than attributes.
        step = params["cur_step_num"]
        if self._is_seldom and step % self._collect_freq and step not in self._tensor_steps:
            if monotonic() >= self._system_due:
                self._record_system(params)
            return
        if params["mode"] != "train":
            return
        if not self._started:
            self._started = True
            self._add_graph(params.train_network)
            self._add_dataset_graph(params.train_dataset)
            # Not before: other callbacks may load a checkpoint when the training begins.
            self._list_artifacts(params, params.train_network, params.train_dataset)
            if self._custom:
                self._record.add_value("custom_lineage_data", "custom", UserDefinedInfo(self._custom))
            self._record.record(params.cur_step_num)
        if monotonic() >= self._system_due:
            self._record_system(params)
        if not params["dataset_sink_mode"]:
            self._collect(params, step)
        if self._landscape and self._landscape["unit"] == "step":
            self._save_point(params, params.cur_step_num)
        is_timing = self._nodes is not None and self._nodes.is_timing
        if is_timing:
            self._nodes.step_end(graph_of(params.train_network))
        self._is_seldom = not self._landscape and not self._first and not is_timing

    def _record_system(self, params) -> None:
        self._record.record_scalars(params["cur_step_num"], self._system.read())
        self._system_due = self._system.due

    def epoch_end(self, run_context):
        params = run_context.original_args()
        if params.mode != "train":
            return
        if params.dataset_sink_mode:
            self._collect(params, params.cur_epoch_num)
        if self._landscape and self._landscape["unit"] == "epoch":
            self._save_point(params, params.cur_epoch_num)
        if self._nodes is not None:
            self._nodes.note(graph_of(params.train_network))
        self._record.flush()

    def end(self, run_context):
        params = run_context.original_args()
        self._end_nodes()
        if params.mode == "train":
            if self._collect_specified_data.get("collect_train_lineage"):
                self._record.add_value("train_lineage", "train", train_lineage(params))
        elif self._collect_specified_data.get("collect_eval_lineage"):
            self._record.add_value("eval_lineage", "eval", evaluation_lineage(params))
        # At the end there are only these: the values of the last step have been recorded with it.
        self._record.record(0, plugin_filter=lambda plugin: plugin.endswith("lineage"))
        if params.mode == "train" and self._landscape:
            self._save_landscape_facts(params.batch_num)

    def _begin_nodes(self, params) -> None:
        times, nonfinite = (
            bool(self._collect_specified_data.get(name))
            for name in ("collect_node_times", "collect_nonfinite_nodes")
        )
        if times or nonfinite:
            self._network = params.train_network
            self._nodes = NodeRecorder(self._record.log_dir, times, nonfinite, lambda: params["cur_step_num"])

    def _end_nodes(self) -> None:
        if self._nodes is not None:
            self._nodes.close(graph_of(self._network))
            self._nodes = self._network = None

    @staticmethod
    def _check_callbacks(params) -> None:
        if sum(isinstance(c, SummaryCollector) for c in params.get("list_callback") or ()) > 1:
            raise _second_collector()

    # ---- values --------------------------------------------------------------------------------------------

    def _collect(self, params, count: int) -> None:
        """Record the values of a step if it is due: the first, and each that `collect_freq` divides."""
        is_due = self._first or count % self._collect_freq == 0
        if self._first:
            self._tensor_steps = self._steps_of_tensors(params)
        with_tensors = self._first or count in self._tensor_steps
        self._first = False
        step = params["cur_step_num"]
        if is_due:
            found = [
                *self._loss(params), *self._input_data(params), *self._histograms(params), *self._changes(),
            ]  # fmt: skip
            self._record.record_values(step, found, None if with_tensors else _is_no_tensor)
        elif with_tensors:
            self._record.record(step, plugin_filter=_is_tensor)

    def _steps_of_tensors(self, params) -> range:
        """Steps, or epochs in sink mode, at which tensors are recorded beside the first, as in MindSpore."""
        total = params.epoch_num * (1 if params.dataset_sink_mode else params.batch_num)
        if self._tensor_freq is not None:
            return range(0, total + 1, self._tensor_freq)
        if total // self._collect_freq < _TENSOR_STEPS:
            return range(0, total + 1, self._collect_freq)
        between = total // (_TENSOR_STEPS - 1)
        return range(0, total + 1, between)[:_TENSOR_STEPS] if between > 1 else range(_TENSOR_STEPS + 1)

    def _loss(self, params) -> list[_Item]:
        if not self._collect_specified_data.get("collect_metric") or not self._is_parse_loss_success:
            return []
        loss = self._get_loss(params)
        if loss is None:
            log.logger(__name__).warning("the network's output has no loss, so none is collected")
            return []
        return [("loss/auto", "scalar", loss)]

    def _get_loss(self, params) -> float | None:
        """The loss of a step; after an output without one it is not asked for again."""
        loss = loss_value(params["net_outputs"])
        self._is_parse_loss_success = loss is not None
        return loss

    def _input_data(self, params) -> list[_Item]:
        if not self._collect_specified_data.get("collect_input_data"):
            return []
        data = params.get("train_dataset_element")
        if isinstance(data, (list, tuple)) and data:
            data = data[0]
        if isinstance(data, Tensor) and data.ndim == 4 and data.shape[1] in (1, 3):
            return [("input_data/auto", "image", data.asnumpy())]
        log.logger(__name__).warning("the input is no batch of images, so it is not collected")
        self._collect_specified_data["collect_input_data"] = False
        return []

    def _histograms(self, params) -> list[_Item]:
        if self._shown is None:
            self._shown = self._shown_parameters(params)
        return [(tag, "histogram", parameter.asnumpy()) for tag, parameter in self._shown]

    def _watched_updates(self, params) -> Updates | None:
        optimizer = _optimizer_of(params)
        if not self._collect_specified_data.get("collect_update_ratio") or optimizer is None:
            return None
        regular = self._collect_specified_data.get("histogram_regular") or ""
        return Updates([p for p in optimizer.parameters if re.match(regular, p.name)])

    def _changes(self) -> list[_Item]:
        found: list[_Item] = []
        for name, norm, ratio in [] if self._updates is None else self._updates.end():
            found.append((f"weight_norm/{name}", "scalar", norm))
            if ratio is not None:
                found.append((f"update_ratio/{name}", "scalar", ratio))
        return found

    def _shown_parameters(self, params) -> list[tuple[str, Parameter]]:
        """Those whose histograms are recorded, by tag."""
        optimizer = _optimizer_of(params)
        if "histogram_regular" not in self._collect_specified_data or optimizer is None:
            return []
        regular = self._collect_specified_data["histogram_regular"]
        chosen = (
            list(optimizer.parameters)[:_HISTOGRAMS]
            if regular is None
            else [p for p in optimizer.parameters if re.match(regular, p.name)]
        )
        return [(f"{p.name}/auto", p) for p in chosen if p.ndim]

    def _add_graph(self, network) -> None:
        if not self._collect_specified_data.get("collect_graph"):
            return
        graph = graph_of(network)
        if graph is None:
            log.logger(__name__).warning(
                "%s collects no graph: the training step is not compiled, as GRAPH_MODE would do", _OWNER
            )
        else:
            self._record.add_value("graph", "train_network/auto", graph_message(graph))

    def _add_dataset_graph(self, dataset) -> None:
        if self._collect_specified_data.get("collect_dataset_graph") and hasattr(dataset, "to_json"):
            self._record.add_value("dataset_graph", "train_dataset", DatasetGraph(dataset.to_json()))

    def _list_artifacts(self, params, network, dataset) -> None:
        if self._record.artifacts is not None:
            name = type(params.get("network") or network).__name__
            self._record.artifacts.begin(params.mode, name, network, dataset, params)

    # ---- the loss landscape --------------------------------------------------------------------------------

    def _save_point(self, params, number: int) -> None:
        """Save the weights of a step that an interval of the landscape names."""
        if not any(number in interval for interval in self._landscape["intervals"]):
            return
        network = params.network
        name = f"{type(network).__name__}_{number}_{self._landscape['unit']}.ckpt"
        path = os.path.join(self._ckpt_dir, name)
        self._ckpt_files[str(number)] = path
        if not os.path.isfile(path):
            save_checkpoint([{"name": p.name, "data": p} for p in network.get_parameters()], path)

    def _save_landscape_facts(self, steps: int) -> None:
        path = Path(self._ckpt_dir, "train_metadata.json")
        if path.exists():
            return
        facts = {
            "epoch_group": dict(enumerate(self._landscape["intervals"])),
            "model_params_file_map": self._ckpt_files,
            "step_per_epoch": steps,
            **{k: self._landscape[k] for k in ("unit", "num_samples", "landscape_size", "create_landscape")},
        }
        write_text(path, json.dumps(facts), 0o400)


def _optimizer_of(params) -> Optimizer | None:
    """The optimizer of the run, or the one that its network holds."""
    if isinstance(params.get("optimizer"), Optimizer):
        return params.optimizer
    network = params.eval_network if params.mode == "eval" else params.train_network
    for _, cell in network.cells_and_names():
        if isinstance(cell, Optimizer):
            return cell
    return None


def train_lineage(params) -> TrainLineage:
    """What a training was made of, by what callbacks are given at its end."""
    optimizer = _optimizer_of(params)
    rate = getattr(optimizer, "learning_rate", None)
    loss_fn = params.loss_fn or getattr(params.network, "loss_fn", None)
    path, size = _dataset_facts(params.train_dataset)
    saved = _latest_checkpoint(params)
    model_size = (
        os.path.getsize(saved) if saved and os.path.exists(saved) else 0
    )  # it may not have been written
    return TrainLineage(
        optimizer=None if optimizer is None else type(optimizer).__name__,
        learning_rate=float(np.ravel(rate.asnumpy())[0]) if isinstance(rate, Parameter) else None,
        loss_function=None if loss_fn is None else type(loss_fn).__name__,
        epoch=params.epoch_num,
        parallel_mode=params.parallel_mode,
        device_num=params.device_number,
        batch_size=_call(params.train_dataset, "get_batch_size"),
        dataset_path=path,
        dataset_size=size,
        network=type(params.network).__name__,
        loss=loss_value(params.net_outputs),
        model_path=json.dumps({"ckpt": saved}),
        model_size=model_size,
    )


def evaluation_lineage(params) -> EvaluationLineage:
    """What an evaluation gave, on which data."""
    path, size = _dataset_facts(params.valid_dataset)
    return EvaluationLineage(json.dumps(params.metrics, default=float), path, size)


def _second_collector():
    return errors.value_error(_OWNER, "there is more than one SummaryCollector instance in callback list")


def _is_tensor(plugin: str) -> bool:
    return plugin == "tensor"


def _is_no_tensor(plugin: str) -> bool:
    return plugin != "tensor"


def _call(dataset, method: str):
    return getattr(dataset, method)() if hasattr(dataset, method) else None


def _dataset_facts(dataset) -> tuple[str | None, int | None]:
    """The directory of a dataset's files, where its class tells, and its number of samples."""
    size, batch = _call(dataset, "get_dataset_size"), _call(dataset, "get_batch_size")
    samples = size * (batch or 1) if size else None
    while dataset is not None:
        for name in ("dataset_dir", "dataset_files", "dataset_file"):
            found = getattr(dataset, name, None)
            found = found[0] if isinstance(found, (list, tuple)) and found else found
            if isinstance(found, (str, os.PathLike)):
                path = os.path.abspath(found)
                return path if name == "dataset_dir" else os.path.dirname(path), samples
        children = getattr(dataset, "children", None) or [None]
        dataset = children[0]
    return None, samples


def _latest_checkpoint(params) -> str | None:
    for callback in params.get("list_callback") or ():
        if isinstance(callback, ModelCheckpoint) and callback.latest_ckpt_file_name:
            wait_for_saves()  # it may be written on another thread
            return os.path.abspath(callback.latest_ckpt_file_name)
    return None
