"""`OnRequestExit`: ends a run in order when a signal asks for it; measures of a step."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

from mycelia.engine.base import config, errors, log
from mycelia.nn.optim.optimizer import Optimizer
from mycelia.train.callbacks.base import Callback


class OnRequestExit(Callback):
    """Stops training or evaluation after the step in which a signal came, and saves the network.

    `save_ckpt`, `save_mindir`: what to save, as ``<directory>/rank_<device>/<file_name>_train`` or ``_eval``;
    `config_file`: a JSON file that asks for the exit with ``{"GracefulExit": 1}``; `sig`: the signal.
    A checkpoint of an earlier exit is loaded when training begins. A network that MindIR cannot express, such
    as one that draws random numbers in training, is saved as a checkpoint only, and the log says so.
    Errors: TypeError, ValueError.
    """

    def __init__(
        self,
        save_ckpt=True,
        save_mindir=True,
        file_name="Net",
        directory="./",
        config_file=None,
        sig=signal.SIGTERM,
    ):
        super().__init__()
        for name, value, kind in (
            ("save_ckpt", save_ckpt, bool),
            ("save_mindir", save_mindir, bool),
            ("sig", sig, int),
        ):
            if not isinstance(value, kind):
                raise errors.type_error(
                    "OnRequestExit", f"{name} must be a {kind.__name__}, but got {value!r}"
                )
        if sig == getattr(signal, "SIGKILL", None):
            raise errors.value_error("OnRequestExit", "SIGKILL cannot be caught; choose another signal")
        if (save_ckpt or save_mindir) and (not isinstance(file_name, str) or not file_name):
            raise errors.value_error("OnRequestExit", f"file_name must be a text, but got {file_name!r}")
        self.save_ckpt, self.save_mindir, self.sig = save_ckpt, save_mindir, sig
        self.remote_config_file = config_file
        self.exit = False
        self.lock = threading.Lock()
        folder = Path("." if directory is None else directory, f"rank_{config.get('device_id')}")
        if save_ckpt or save_mindir:
            os.makedirs(folder, exist_ok=True)
        self.train_name = str(folder / f"{file_name}_train")
        self.eval_name = str(folder / f"{file_name}_eval")

    # ---- training ------------------------------------------------------------------------------------------

    def on_train_begin(self, run_context):
        signal.signal(self.sig, self._handle_signal)
        self._load(run_context.original_args().train_network, self.train_name)

    def on_train_step_begin(self, run_context):
        if self._is_asked_by_file():
            self.exit = True

    def on_train_step_end(self, run_context):
        if self.exit:
            run_context.request_stop()

    def on_train_epoch_end(self, run_context):
        if self.exit:
            run_context.request_stop()

    def on_train_end(self, run_context):
        params = run_context.original_args()
        self._save(params.train_network, self.train_name, params.get("train_dataset_element"))

    # ---- evaluation ----------------------------------------------------------------------------------------

    def on_eval_begin(self, run_context):
        signal.signal(self.sig, self._handle_signal)
        network = run_context.original_args().eval_network
        if not self._load(network, self.eval_name):
            self._load(network, self.train_name)

    def on_eval_step_end(self, run_context):
        if self.exit:
            run_context.request_stop()

    def on_eval_end(self, run_context):
        params = run_context.original_args()
        self._save(params.eval_network, self.eval_name, params.get("eval_dataset_element"))

    # ---- parts ---------------------------------------------------------------------------------------------

    def _handle_signal(self, signum, frame) -> None:
        self.exit = True

    def _is_asked_by_file(self) -> bool:
        if self.remote_config_file is None or not os.path.isfile(self.remote_config_file):
            return False
        with open(self.remote_config_file, encoding="utf-8") as file:
            try:
                return json.load(file).get("GracefulExit") == 1
            except (ValueError, AttributeError, RecursionError):
                log.logger(__name__).warning("%s is no JSON object", self.remote_config_file)
                return False

    def _load(self, network, name: str) -> bool:
        if not self.save_ckpt or not os.path.isfile(f"{name}.ckpt"):
            return False
        from mycelia.io.checkpoint import load_checkpoint

        load_checkpoint(f"{name}.ckpt", net=network)
        return True

    def _save(self, network, name: str, inputs) -> None:
        if not self.exit:
            return
        with self.lock:
            if self.save_ckpt:
                from mycelia.io.checkpoint import save_checkpoint

                save_checkpoint(network, f"{name}.ckpt")
            if self.save_mindir and inputs is not None:
                from mycelia.io.mindir import export

                try:
                    export(network, *inputs, file_name=name, file_format="MINDIR")
                except (ValueError, errors.MyceliaError) as error:  # random numbers, say; the exit goes on
                    log.logger(__name__).error("OnRequestExit: %s.mindir is not written: %s", name, error)


class FlopsUtilizationCollector(Callback):
    """Prints the operations of a step, and each step's time and share of `computility` (operations a second).

    Counted are the products of layers with a weight: forward, and in training both gradients.
    `data_size`: batches of an epoch; `full_flops`: the whole model's operations, not one device's;
    `enable_ma_collector`: with computility 1 nothing is printed.  Errors: TypeError, ValueError.
    """

    def __init__(self, data_size, computility=1, full_flops=True, enable_ma_collector=False):
        super().__init__()
        owner = "FlopsUtilizationCollector"
        for name, value in (("full_flops", full_flops), ("enable_ma_collector", enable_ma_collector)):
            if not isinstance(value, bool):
                raise errors.type_error(owner, f"{name} must be a bool, but got {value!r}")
        if isinstance(data_size, bool) or not isinstance(data_size, int) or data_size < 1:
            raise errors.value_error(owner, f"data_size must be a positive int, but got {data_size!r}")
        self.data_size, self.computility, self.full_flops = data_size, computility, full_flops
        self.verbose = not (computility == 1 and enable_ma_collector)
        self._products: list[float] | None = None  # operations of each layer in one forward pass
        self._hooks: list = []
        self._began = time.time()

    def step_begin(self, run_context):
        """Begin to measure; during the first step layers report their sizes."""
        if self._products is None:
            params = run_context.original_args()
            if params.mode not in ("train", "eval"):
                raise errors.one_of(
                    params.mode, ["train", "eval"], subject="FlopsUtilizationCollector", what="mode"
                )
            network = params.train_network if params.mode == "train" else params.eval_network
            self._products = []
            optimizers = {c for _, c in network.cells_and_names() if isinstance(c, Optimizer)}
            for _, cell in network.cells_and_names():
                weight = cell._params.get("weight")
                if weight is not None and weight.ndim > 1 and not cell._cells and cell not in optimizers:
                    self._hooks.append(cell.register_forward_hook(self._report))
        self._began = time.time()

    def _report(self, cell, inputs, output) -> None:
        weight = cell._params["weight"]
        output = output[0] if isinstance(output, (tuple, list)) else output
        self._products.append(2.0 * output.size * weight.size / weight.shape[0])

    def step_end(self, run_context):
        """Print the time of the step and what share of the machine it used."""
        seconds = time.time() - self._began
        training = run_context.original_args().mode == "train"
        products = self._products or []
        flops = sum(products) * (3 if training else 1) - (products[0] if training and products else 0)
        if self._hooks:
            while self._hooks:
                self._hooks.pop().remove()
            if self.verbose:
                kinds = ("Full model", "Full hardware", "Shard model", "Shard hardware")
                print(", ".join(f"{kind} flops is {flops}" for kind in kinds) + ".", flush=True)
        if self.verbose:
            share = flops / self.computility / max(seconds, 1e-9)
            name = "Train" if training else "Eval"
            print(f"{name} per step time: {seconds * 1e3:.3f} ms mfu:{share:.2%} hfu:{share:.2%}", flush=True)
