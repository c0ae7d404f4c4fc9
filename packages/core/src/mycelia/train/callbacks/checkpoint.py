"""`ModelCheckpoint` and its `CheckpointConfig`: saving the training state while it goes on."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import numpy as np

from mycelia.engine.base import errors, ignored, log
from mycelia.engine.base.wire import field
from mycelia.engine.ops.random.generator import Generator
from mycelia.engine.tensors.tensor import Tensor
from mycelia.io.checkpoint import save_checkpoint, wait_for_saves
from mycelia.io.files import atomic_write
from mycelia.nn.cell import Cell
from mycelia.train.callbacks.base import Callback
from mycelia.train.callbacks.monitor import place_in_epoch
from mycelia.train.summary.graph import graph_message, graph_of


def _count(name: str, value, allow_none: bool = True) -> int | None:
    if value is None and allow_none:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise errors.type_error("CheckpointConfig", f"{name} must be an int, but got {value!r}")
    if value < 0:
        raise errors.value_error("CheckpointConfig", f"{name} must be at least 0, but got {value}")
    return value


def _setting(name: str, doc: str) -> property:
    """A setting that is read as a property and changed by assignment."""

    def put(self, value) -> None:
        self.__dict__[name] = value

    return property(lambda self: self.__dict__[name], put, doc=doc)


class CheckpointConfig:
    """When checkpoints are saved and how many are kept.

    Save every `save_checkpoint_steps` steps, or every `save_checkpoint_seconds` (steps win). Keep the newest
    `keep_checkpoint_max` files, or one per `keep_checkpoint_per_n_minutes` (max wins). `append_info`:
    "epoch_num", "step_num" and at most one dict of more values, of Generators their states at that time.
    `exception_save`: save when training raises.
    Errors: ValueError when all four policies are 0 or None, or for `crc_check` together with encryption.
    """

    @ignored.arguments(
        remove_redundancy="no other process takes part",
        kwargs="CheckpointConfig has no such option",
    )
    def __init__(
        self,
        save_checkpoint_steps=1,
        save_checkpoint_seconds=0,
        keep_checkpoint_max=5,
        keep_checkpoint_per_n_minutes=0,
        integrated_save=True,
        async_save=False,
        saved_network=None,
        append_info=None,
        enc_key=None,
        enc_mode="AES-GCM",
        exception_save=False,
        crc_check=False,
        remove_redundancy=False,
        format="ckpt",
        **kwargs,
    ):
        self.save_checkpoint_steps = _count("save_checkpoint_steps", save_checkpoint_steps)
        self.save_checkpoint_seconds = _count("save_checkpoint_seconds", save_checkpoint_seconds)
        self.keep_checkpoint_max = _count("keep_checkpoint_max", keep_checkpoint_max)
        self.keep_checkpoint_per_n_minutes = _count(
            "keep_checkpoint_per_n_minutes", keep_checkpoint_per_n_minutes
        )
        policies = (
            self.save_checkpoint_steps,
            self.save_checkpoint_seconds,
            self.keep_checkpoint_max,
            self.keep_checkpoint_per_n_minutes,
        )
        if not any(policies):
            raise errors.value_error(
                "CheckpointConfig", "the two save and the two keep policies cannot all be 0 or None"
            )
        if self.save_checkpoint_steps:
            self.save_checkpoint_seconds = None
        if self.keep_checkpoint_max:
            self.keep_checkpoint_per_n_minutes = None
        elif not self.keep_checkpoint_per_n_minutes:
            self.keep_checkpoint_max = 1
        if saved_network is not None and not isinstance(saved_network, Cell):
            raise errors.type_error(
                "CheckpointConfig",
                f"saved_network must be a Cell or None, but got {type(saved_network).__name__}",
            )
        if crc_check and enc_key is not None:
            raise errors.value_error(
                "CheckpointConfig", "crc_check cannot be combined with encryption (enc_key)"
            )
        if format not in ("ckpt", "safetensors"):
            raise errors.one_of(format, ["ckpt", "safetensors"], subject="CheckpointConfig", what="format")
        self.integrated_save, self.async_save, self.saved_network = (
            bool(integrated_save),
            async_save,
            saved_network,
        )
        self.enc_key, self.enc_mode, self.exception_save = enc_key, enc_mode, bool(exception_save)
        self.crc_check, self.remove_redundancy, self.format = bool(crc_check), bool(remove_redundancy), format
        self.append_dict = self._append_info(append_info)

    @staticmethod
    def _append_info(append_info) -> dict | None:
        if append_info is None:
            return None
        if not isinstance(append_info, (list, tuple)):
            raise errors.type_error(
                "CheckpointConfig", f"append_info must be a list, but got {type(append_info).__name__}"
            )
        found: dict = {}
        dicts = 0
        for item in append_info:
            if isinstance(item, dict):
                dicts += 1
                if dicts > 1:
                    raise errors.type_error("CheckpointConfig", "append_info may hold one dict only")
                for name, value in item.items():
                    if not isinstance(value, (int, float, bool, str, Tensor, Generator)):
                        raise errors.type_error(
                            "CheckpointConfig",
                            f"append_info['{name}'] must be a number, text, Tensor or Generator, but got "
                            f"{type(value).__name__}",
                        )
                found.update(item)
            elif item in ("epoch_num", "step_num"):
                found[item] = 0
            else:
                raise errors.type_error(
                    "CheckpointConfig",
                    f"append_info may hold 'epoch_num', 'step_num' and a dict, but got {item!r}",
                )
        return found

    save_checkpoint_steps = _setting("save_checkpoint_steps", "Steps between two files.")
    save_checkpoint_seconds = _setting("save_checkpoint_seconds", "Seconds between two files.")
    keep_checkpoint_max = _setting("keep_checkpoint_max", "How many files stay.")
    keep_checkpoint_per_n_minutes = _setting("keep_checkpoint_per_n_minutes", "Minutes for each file kept.")
    integrated_save = _setting("integrated_save", "Whether parts of a parameter are joined.")
    async_save = _setting("async_save", "Whether a thread or process writes the file.")
    saved_network = _setting("saved_network", "The network that is saved instead.")
    append_dict = _setting("append_dict", "What is saved besides.")
    enc_key = _setting("enc_key", "The key of encryption.")
    enc_mode = _setting("enc_mode", "The mode of encryption.")
    crc_check = _setting("crc_check", "Whether a checksum is added.")

    @property
    def map_param_inc(self) -> bool:
        """Whether map parameters are saved by what changed: there are none."""
        return False

    def get_checkpoint_policy(self) -> dict:
        """The policies in force."""
        return {
            "save_checkpoint_steps": self.save_checkpoint_steps,
            "save_checkpoint_seconds": self.save_checkpoint_seconds,
            "keep_checkpoint_max": self.keep_checkpoint_max,
            "keep_checkpoint_per_n_minutes": self.keep_checkpoint_per_n_minutes,
            "saved_network": self.saved_network,
        }


class ModelCheckpoint(Callback):
    """Saves ``{directory}/{prefix}-{epoch}_{step in epoch}.ckpt`` as `config` says, and once more at the end.
    Where training is compiled its graph goes to ``{prefix}-graph.meta``, once, as a MindSpore ModelProto.

    When files of that prefix are there already, `_1`, `_2`, ... is added to the prefix. `prefix` and
    `directory` may be functions of the run's parameters, called whenever a file is written: what `prefix`
    gives is the whole name then. Errors: ValueError for a prefix with "/", TypeError for another config.
    """

    def __init__(self, prefix="CKP", directory=None, config: CheckpointConfig | None = None):
        super().__init__()
        if not callable(prefix) and (not isinstance(prefix, str) or "/" in prefix):
            raise errors.value_error(
                "ModelCheckpoint", f"prefix must be a text without '/', or a function, but got {prefix!r}"
            )
        if (
            directory is not None
            and not callable(directory)
            and not isinstance(directory, (str, os.PathLike))
        ):
            raise errors.type_error(
                "ModelCheckpoint",
                f"directory must be a path or a function, but got {type(directory).__name__}",
            )
        if config is not None and not isinstance(config, CheckpointConfig):
            raise errors.type_error(
                "ModelCheckpoint", f"config must be a CheckpointConfig, but got {type(config).__name__}"
            )
        self._config = config or CheckpointConfig()
        self._prefix, self._given_directory = prefix, directory
        self._directory: Path | None = None
        if not callable(directory):
            self._directory = Path.cwd() if directory is None else Path(directory)
            self._directory.mkdir(parents=True, exist_ok=True)
            if not callable(prefix):
                self._prefix = self._free_prefix(prefix)
        self._last_step = 0
        self._last_time = time.time()
        self._window_start = self._last_time
        self._window_files: list[Path] = []
        self._latest = ""
        self._has_graph = False
        self._params = None

    @property
    def latest_ckpt_file_name(self) -> str:
        """The file saved last."""
        return self._latest

    # ---- events --------------------------------------------------------------------------------------------

    def begin(self, run_context):
        params = run_context.original_args()
        if params.get("mode") == "eval":
            return
        self._params = params
        self._last_step = params.get("last_save_ckpt_step") or 0
        self._last_time = self._window_start = time.time()

    def step_end(self, run_context):
        params = run_context.original_args()
        if params.get("mode") == "eval":
            return
        self._params = params
        if not self._has_graph:
            self._has_graph = True
            self._save_graph(params)
        if self._is_due(params):
            self._save(params)

    def end(self, run_context):
        params = run_context.original_args()
        if params.get("mode") == "eval":
            return
        if params.cur_step_num > self._last_step or not self._latest:
            self._save(params)
        wait_for_saves()

    def __exit__(self, *err):
        if err and err[0] is not None and self._config.exception_save and self._params is not None:
            params = self._params
            self._write(params, f"{self._stem(params)}_breakpoint")

    # ---- saving --------------------------------------------------------------------------------------------

    def _is_due(self, params) -> bool:
        config = self._config
        if config.save_checkpoint_steps:
            return params.cur_step_num >= self._last_step + config.save_checkpoint_steps
        if config.save_checkpoint_seconds:
            return time.time() - self._last_time >= config.save_checkpoint_seconds
        return False

    def _save(self, params) -> None:
        path = self._write(params, self._stem(params))
        self._last_step = params.cur_step_num
        self._last_time = time.time()
        params.last_save_ckpt_step, params.latest_ckpt_file = params.cur_step_num, str(path)
        self._latest = str(path)
        self._clean(path)

    def _save_graph(self, params) -> None:
        graph = graph_of(params.train_network)
        if graph is None:  # training runs as Python
            return
        stem = self._named(params) if callable(self._prefix) else self._prefix_here(params)
        with atomic_write(str(self._directory / f"{stem}-graph.meta"), 0o600) as file:
            file.write(field(1, 1) + field(4, graph_message(graph)))  # ir_version, graph

    def _stem(self, params) -> str:
        """The name of a file to be written now, without its end."""
        if callable(self._prefix):
            return self._named(params)
        return f"{self._prefix_here(params)}-{params.cur_epoch_num}_{place_in_epoch(params)}"

    def _prefix_here(self, params) -> str:
        """The prefix; in a directory that a function names it becomes one that has no files there yet."""
        self._go_to_directory(params)
        if callable(self._given_directory) and not self._latest:
            self._prefix = self._free_prefix(self._prefix)
        return self._prefix

    def _named(self, params) -> str:
        """What the function that is the prefix gives."""
        self._go_to_directory(params)
        name = self._prefix(params)
        if not isinstance(name, str) or "/" in name:
            raise errors.value_error(
                "ModelCheckpoint", f"prefix must give a text without '/', but gave {name!r}"
            )
        return name

    def _go_to_directory(self, params) -> None:
        if callable(self._given_directory):
            self._directory = Path(self._given_directory(params))
            self._directory.mkdir(parents=True, exist_ok=True)

    def _write(self, params, stem: str) -> Path:
        config = self._config
        path = self._directory / f"{stem}.{config.format}"
        extra = dict(config.append_dict or {})
        if "epoch_num" in extra:
            extra["epoch_num"] = params.cur_epoch_num
        if "step_num" in extra:
            extra["step_num"] = params.cur_step_num
        network = config.saved_network or params.train_network
        if path.exists():
            path.chmod(0o600)
        save_checkpoint(
            network,
            str(path),
            config.integrated_save,
            config.async_save,
            extra or None,
            config.enc_key,
            config.enc_mode,
            crc_check=config.crc_check,
            format=config.format,
        )
        return path

    def _files(self) -> list[Path]:
        """Saved files of this prefix, oldest first; none if a function names them, so that all stay."""
        if callable(self._prefix):
            return []
        pattern = re.compile(re.escape(str(self._prefix)) + r"-[\d_-]+\." + self._config.format)
        found = [p for p in self._directory.iterdir() if pattern.fullmatch(p.name)]
        return sorted(found, key=lambda p: (p.stat().st_mtime_ns, p.name))

    def _clean(self, newest: Path) -> None:
        config = self._config
        if config.keep_checkpoint_max:
            for old in self._files()[: -config.keep_checkpoint_max]:
                _remove(old)
            return
        self._window_files.append(newest)
        if not newest.exists():  # a thread writes it still, or could not: until then the one before stays
            return
        now = time.time()
        # Within a window only the newest file stays; a full window starts the next one.
        for old in self._window_files[:-1]:
            _remove(old)
        self._window_files = self._window_files[-1:]
        if now - self._window_start >= config.keep_checkpoint_per_n_minutes * 60:
            self._window_start = now
            self._window_files = []

    def _free_prefix(self, prefix: str) -> str:
        """`prefix`, or the next `prefix_N` when files of it exist."""
        pattern = re.compile(re.escape(prefix) + r"(?:_(\d+))?-[\d_-]+\.(?:ckpt|safetensors)")
        used = -1
        for path in self._directory.iterdir():
            match = pattern.fullmatch(path.name)
            if match:
                used = max(used, int(match.group(1) or 0))
        return prefix if used < 0 else f"{prefix}_{used + 1}"


def _remove(path: Path) -> None:
    try:
        path.chmod(0o600)
        path.unlink()
    except OSError as e:
        log.logger(__name__).warning("cannot remove the old checkpoint %s: %s", path.name, e.strerror)


class BackupAndRestore(Callback):
    """Saves ``{backup_dir}/backup.ckpt`` each `save_freq` epochs and starts from it
    when training begins again.
    """

    def __init__(self, backup_dir, save_freq="epoch", delete_checkpoint=True):
        super().__init__()
        if save_freq != "epoch" and (
            isinstance(save_freq, bool) or not isinstance(save_freq, int) or save_freq < 1
        ):
            raise errors.value_error(
                "BackupAndRestore", f"save_freq must be 'epoch' or a positive int, but got {save_freq!r}"
            )
        self.directory = Path(backup_dir)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.file = self.directory / "backup.ckpt"
        self.save_freq = 1 if save_freq == "epoch" else save_freq
        self.delete_checkpoint = bool(delete_checkpoint)

    def on_train_begin(self, run_context):
        if not self.file.is_file():
            return
        from mycelia.io.checkpoint import load_checkpoint
        from mycelia.io.into_net import load_param_into_net

        params = run_context.original_args()
        saved = load_checkpoint(str(self.file))
        epoch = saved.pop("epoch_num", None)
        load_param_into_net(params.train_network, saved)
        if epoch is not None:
            params.cur_epoch_num = int(np.asarray(epoch.asnumpy()).reshape(-1)[0])

    def on_train_epoch_end(self, run_context):
        params = run_context.original_args()
        if params.cur_epoch_num % self.save_freq == 0:
            if self.file.exists():
                self.file.chmod(0o600)
            save_checkpoint(
                params.train_network, str(self.file), append_dict={"epoch_num": params.cur_epoch_num}
            )

    def on_train_end(self, run_context):
        if self.delete_checkpoint and self.file.exists():
            _remove(self.file)
