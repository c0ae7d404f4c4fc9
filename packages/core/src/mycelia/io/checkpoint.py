"""Checkpoints: save_checkpoint, load_checkpoint, load_param_into_net, for .ckpt and .safetensors files.

A load either gives everything a file holds or an error; a net receives all its values or none.
"""

from __future__ import annotations

import functools
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from mycelia.engine.base import errors, ignored, log
from mycelia.engine.communication import stages, world
from mycelia.engine.communication.share import GridShare
from mycelia.io import ckpt, provenance, safetensors
from mycelia.io.files import atomic_write
from mycelia.io.into_net import load_param_into_net
from mycelia.io.raw import Raw, of_tensor, to_parameter

_log = log.logger(__name__)
_SUFFIX = {"ckpt": ".ckpt", "safetensors": ".safetensors"}
_SAFETENSORS = ("crc_check", "chosen")  # what reading them can be told
_READ_ONLY = 0o400  # as MindSpore leaves its files: a checkpoint is replaced as a whole, never edited


# ---- saving ------------------------------------------------------------------------------------
@ignored.arguments(kwargs="save_checkpoint has no such option")
def save_checkpoint(
    save_obj,
    ckpt_file_name,
    integrated_save=True,
    async_save=False,
    append_dict=None,
    enc_key=None,
    enc_mode="AES-GCM",
    choice_func=None,
    crc_check=False,
    format="ckpt",
    **kwargs,
):
    """Saves the parameters of a Cell, a list or a dict to a file.

    save_obj: a Cell, a list of Parameters or of ``{"name": str, "data": Tensor}``, or a dict of name to
    Tensor, array or (only ckpt) text. The suffix of `format` ('ckpt' or 'safetensors') is added to
    `ckpt_file_name` when it is not there. `async_save` (True, 'thread' or 'process') copies the values and
    writes them on another thread. `append_dict` adds numbers, texts (only ckpt), tensors and the states of
    Generators. `choice_func` gets each name and says whether it is saved. `integrated_save`: parts of states
    that an optimizer divides among processes are joined, so that all of them must save; else each writes its
    own. Parameters that only other stages of a pipeline have are not written. Further keywords have no
    effect, as a warning says. The file is replaced as a whole: after an error (disk full, for instance) the
    old one is still there.
    Errors: TypeError, ValueError for wrong arguments; OSError of the file system, IsADirectoryError for a
    directory.
    """
    path = _checked_save_path(ckpt_file_name, format)
    if async_save not in (True, False, "thread", "process"):
        raise ValueError(
            "For 'save_checkpoint', the argument 'async_save' can only be 'process' or 'thread',"
            f"but got {async_save}."
        )
    if enc_key is not None:
        ckpt.crypto.check_key(enc_key, enc_mode, "enc")
        if format != "ckpt" or crc_check:
            raise ValueError(
                "For 'save_checkpoint', 'enc_key' cannot be combined with crc_check or format='safetensors'."
            )
    entries, tell = _entries(save_obj, append_dict, choice_func, bool(integrated_save))
    if format == "safetensors":
        if ckpt.LAYOUTS in entries:
            raise errors.error(
                errors.NotSupportedError, "save_checkpoint", "parts of Parameters are written into ckpt "
                "files only",
                hint="integrated_save=True writes whole Parameters in either format",
            )  # fmt: skip
        texts = [name for name, value in entries.items() if isinstance(value, str)]
        if texts:
            raise TypeError(f"For 'save_checkpoint', safetensors files cannot hold text: {', '.join(texts)}")

    def write() -> None:
        with atomic_write(path, _READ_ONLY) as file:
            if format == "ckpt":
                ckpt.write(file, entries.items(), crc_check=crc_check, key=enc_key, mode=enc_mode)
            else:
                safetensors.write(file, entries, crc_check=crc_check)
        tell(path)

    if async_save:
        entries = _copied(entries)
        _writer().submit(path, write)
        return
    wait_for_saves()  # an earlier asynchronous save of the same file must not win
    write()


def save_in_background(save_obj, ckpt_file_name: str, append_dict=None) -> Future:
    """As `save_checkpoint` with `async_save` and `crc_check`, of the parts of this process; what comes back
    is done when the file is whole on the disk, or has the error. Errors: TypeError, ValueError for wrong
    arguments.
    """
    path = _checked_save_path(ckpt_file_name, "ckpt")
    entries, tell = _entries(save_obj, append_dict, None, joins=False)
    entries = _copied(entries)

    def write() -> None:
        with atomic_write(path, _READ_ONLY) as file:
            ckpt.write(file, entries.items(), crc_check=True)
        tell(path)

    return _writer().submit(path, write)


def _entries(
    save_obj, append_dict, choice_func, joins: bool
) -> tuple[dict[str, Raw | str], Callable[[str], object]]:
    """What is written by name, and what is to be told the path of the file; `joins`: parts are joined."""
    entries = {n: v for n, v in _parameters(save_obj).items() if not getattr(v, "elsewhere", False)}
    if choice_func is not None:
        entries = {name: value for name, value in entries.items() if choice_func(name)}
    tell = provenance.writing("checkpoint", filter(_is_tensor, entries.values()))
    grids = {} if joins else {n: v.share for n, v in entries.items() if isinstance(_share(v), GridShare)}
    entries = {n: value if isinstance(value, str) else _raw(value, joins) for n, value in entries.items()}
    if grids:
        text = json.dumps({name: [s.rank, s.matrix, s.axes, s.shape] for name, s in grids.items()})
        entries = {ckpt.LAYOUTS: text, **entries}
    for name, value in (append_dict or {}).items():
        entries[name] = _appended(name, value)
    return entries, tell


def _share(value: Any) -> Any:
    return getattr(value, "share", None)


def _raw(value: Any, joins: bool) -> Raw:
    found = of_tensor(value)
    share = _share(value)
    if share is None or not joins:
        return found
    group = stages.shard_group("save_checkpoint", share.size)
    parts = world.group("save_checkpoint", group).all_gather(found.array, uneven=True)
    return Raw(found.dtype, share.shape, share.join(parts))


def _copied(entries: Mapping[str, Raw | str]) -> dict[str, Raw | str]:
    """Values of this moment, which training does not change any more."""
    return {name: value.copy() if isinstance(value, Raw) else value for name, value in entries.items()}


class _Writer:
    """The one thread of asynchronous saves: they finish in the order in which they were asked for."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "save_checkpoint")
        self._last: Future | None = None

    def submit(self, path: str, write: Callable[[], None]) -> Future:
        self._last = self._executor.submit(write)
        self._last.add_done_callback(functools.partial(self._report, path))
        return self._last

    @property
    def is_busy(self) -> bool:
        return self._last is not None and not self._last.done()

    def wait(self) -> None:
        if self._last is not None:
            wait([self._last])

    @staticmethod
    def _report(path: str, done: Future) -> None:
        if done.exception() is not None:
            _log.error("Failed to save the checkpoint file %s: %s", path, done.exception())


@functools.cache
def _writer() -> _Writer:
    return _Writer()


def wait_for_saves() -> None:
    """Return when no asynchronous save is being written any more."""
    if _writer.cache_info().currsize:
        _writer().wait()


def async_ckpt_thread_status():
    """Whether an asynchronous save is still being written."""
    return bool(_writer.cache_info().currsize) and _writer().is_busy


def _checked_save_path(file_name: Any, format: str) -> str:
    if not isinstance(file_name, str):
        raise TypeError(
            f"For 'save_checkpoint', the parameter {file_name} for checkpoint file name is invalid,"
            f"'ckpt_file_name' must be string, but got {type(file_name)}."
        )
    if format not in _SUFFIX:
        raise ValueError(
            f"For 'save_checkpoint', the format must be 'safetensors' or 'ckpt', but got {format}."
        )
    path = os.path.realpath(file_name)
    if os.path.isdir(path):
        raise IsADirectoryError(
            f"For 'save_checkpoint', the parameter `ckpt_file_name`: {path} is a directory, it must be a "
            "file name."
        )
    return path if path.endswith(format) else path + _SUFFIX[format]


def _parameters(save_obj: Any) -> dict[str, Any]:
    """Name -> Tensor, in the order in which they are written."""
    if hasattr(save_obj, "parameters_and_names"):
        return {parameter.name: parameter for _, parameter in save_obj.parameters_and_names()}
    if isinstance(save_obj, Mapping):
        items: Iterable = save_obj.items()
    elif isinstance(save_obj, list):
        items = [_item(entry) for entry in save_obj]
    else:
        raise TypeError(
            "For 'save_checkpoint', the parameter 'save_obj' must be nn.Cell, list or dict, "
            f"but got {type(save_obj)}."
        )
    result = {}
    for name, value in items:
        if isinstance(value, np.ndarray) and isinstance(save_obj, Mapping):
            value = _tensor(value)
        texts_fit = isinstance(value, str) and isinstance(save_obj, Mapping)
        if not isinstance(name, str) or not (texts_fit or _is_tensor(value)):
            raise TypeError(
                "For 'save_checkpoint', names must be strings and values Tensors or Parameters, "
                f"but got {name!r}: {type(value)}."
            )
        result[name] = value
    return result


def _item(entry: Any) -> tuple[Any, Any]:
    if isinstance(entry, Mapping) and {"name", "data"} <= entry.keys():
        return entry["name"], entry["data"]
    if _is_tensor(entry) and isinstance(getattr(entry, "name", None), str):
        return entry.name, entry
    raise TypeError(
        "For 'save_checkpoint', when 'save_obj' is a list, its items must be Parameters or dicts with "
        f"'name' and 'data', but got {type(entry)}."
    )


def _is_tensor(value: Any) -> bool:
    from mycelia.engine.tensors.tensor import Tensor

    return isinstance(value, Tensor)


def _tensor(array: np.ndarray) -> Any:
    from mycelia.engine.tensors.tensor import Tensor

    return Tensor(array)


def _appended(name: Any, value: Any) -> Raw | str:
    from mycelia.engine.ops.random.generator import Generator

    if isinstance(name, str):
        if isinstance(value, Generator):
            value = value.get_state()
        if isinstance(value, str):
            return value
        if isinstance(value, (bool, int, float)):
            return _number(name, value)
        if _is_tensor(value):
            return of_tensor(value)
    raise TypeError(
        "For 'save_checkpoint', the type of dict 'append_dict' must be key: string, value: int, float, bool, "
        f"str or Tensor, but got key: {type(name)}, value: {type(value)}"
    )


def _number(name: str, value: bool | int | float) -> Raw:
    if isinstance(value, bool):
        dtype = "bool"
    elif isinstance(value, float):
        dtype = "float64" if isinstance(value, np.float64) else "float32"
    else:
        dtype = "int64" if value < 2**63 else "uint64"
    try:
        with np.errstate(over="ignore"):  # what float32 does not reach is infinite, as in MindSpore
            return Raw(dtype, (), np.array(value, dtype))
    except OverflowError:
        raise errors.value_error(
            "save_checkpoint", f"append_dict: {name!r} is {value}, which 64 bits cannot hold"
        ) from None


# ---- loading -----------------------------------------------------------------------------------
@ignored.arguments(remove_redundancy="a file has all its Parameters")
def load_checkpoint(
    ckpt_file_name,
    net=None,
    strict_load=False,
    filter_prefix=None,
    dec_key=None,
    dec_mode="AES-GCM",
    specify_prefix=None,
    choice_func=None,
    crc_check=False,
    remove_redundancy=False,
    format="ckpt",
):
    """The content of a checkpoint: a dict of name to Parameter, and to str for texts that were appended.

    ckpt_file_name: a path, or for safetensors a BytesIO with the content.
    net: a Cell that receives the values as by `load_param_into_net(net, ..., strict_load)`. filter_prefix,
    specify_prefix: leave out, or take only, names with these prefixes (a str or a list of them).
    choice_func: without prefixes, gets each name and says whether it is loaded.
    `remove_redundancy` concerns distributed runs.
    crc_check: compares the CRC when the file has one.
    Errors: ValueError with the reason if the file is missing, damaged, encrypted, or nothing is left of it.
    """
    path = _checked_load_path(ckpt_file_name, format)
    chosen = _chooser(filter_prefix, specify_prefix, choice_func)
    known = {ckpt.LAYOUTS}.__contains__
    entries = read_entries(
        path, format, crc_check=crc_check, key=dec_key, mode=dec_mode, chosen=lambda n: known(n) or chosen(n)
    )
    grids = entries.pop(ckpt.LAYOUTS, None)
    parameters = {name: _loaded(name, value) for name, value in entries.items() if value is not None}
    _lay(path, parameters, grids)
    if not parameters:
        raise ValueError(
            "The loaded parameter dict is empty after filter or specify, please check whether "
            f"'filter_prefix' or 'specify_prefix' are set correctly ({path} holds {len(entries)} values)."
        )
    provenance.read(path, filter(_is_tensor, parameters.values()))
    if net is not None:
        load_param_into_net(net, parameters, strict_load)
    return parameters


def _lay(path: Any, parameters: Mapping[str, Any], grids: Any) -> None:
    """Tells parts of Parameters where they lie in the whole, as the entry `ckpt.LAYOUTS` says."""
    if grids is None:
        return
    try:
        found = {
            name: GridShare(rank, tuple(matrix), tuple(map(tuple, axes)), tuple(shape))
            for name, (rank, matrix, axes, shape) in json.loads(grids).items()
        }
        wrong = [n for n, p in parameters.items() if n in found and tuple(p.shape) != found[n].part_shape]
    except (ValueError, TypeError, AttributeError, IndexError, ZeroDivisionError) as cause:
        raise _unreadable(path, f"what it says of parts is damaged ({cause})") from None
    if wrong:
        raise _unreadable(path, f"{wrong[0]} has another shape than the part that it is said to be")
    for name, share in found.items():
        if name in parameters:
            parameters[name].share = share


def read_entries(path, format: str = "ckpt", **options) -> dict[str, Raw | str | None]:
    """What `ckpt.read` or `safetensors.read` gives. Errors: FileFormatError, a ValueError, with the file's
    name; what the function `chosen` raises, as it is.
    """
    chosen, raised = options.get("chosen"), []

    def guarded(name: str) -> bool:
        try:
            return chosen(name)
        except Exception as e:
            raised.append(e)
            raise

    if chosen is not None:
        options["chosen"] = guarded
    try:
        if format == "ckpt":
            entries = ckpt.read(path, **options)
        else:
            entries, _ = safetensors.read(path, **{k: v for k, v in options.items() if k in _SAFETENSORS})
    except errors.MyceliaError:
        raise
    except ValueError as e:
        if e in raised:
            raise
        raise _unreadable(path, str(e)) from None
    if not entries:
        raise _unreadable(path, "it holds no values; is it cut off?")
    return entries


def _unreadable(path, why: str) -> errors.MyceliaError:
    return errors.error(errors.FileFormatError, f"Failed to read the checkpoint file {path}: {why}.")


def load_checkpoint_async(
    ckpt_file_name,
    net=None,
    strict_load=False,
    filter_prefix=None,
    dec_key=None,
    dec_mode="AES-GCM",
    specify_prefix=None,
    choice_func=None,
):
    """`load_checkpoint` on another thread: a future whose `result()` is the dict.
    The format follows from the suffix.

    Wait for the result before using `net`.
    """
    format = "safetensors" if str(ckpt_file_name).endswith(_SUFFIX["safetensors"]) else "ckpt"
    executor = ThreadPoolExecutor(1, "load_checkpoint")
    try:
        return executor.submit(
            load_checkpoint, ckpt_file_name, net, strict_load, filter_prefix, dec_key, dec_mode,
            specify_prefix, choice_func, format=format,
        )  # fmt: skip
    finally:
        executor.shutdown(wait=False)  # ends its thread when the load is done


def _checked_load_path(file_name: Any, format: str) -> Any:
    """The path as it is read; a stream (BytesIO) of safetensors stands for itself."""
    if isinstance(file_name, io.BytesIO) and format == "safetensors":
        return file_name
    if not isinstance(file_name, str):
        raise TypeError(
            f"For 'load_checkpoint', the argument 'ckpt_file_name' must be string, but got {type(file_name)}."
        )
    if format not in _SUFFIX:
        raise ValueError(
            f"For 'load_checkpoint', the format must be 'safetensors' or 'ckpt', but got {format}."
        )
    path = os.path.realpath(file_name)
    if not path.endswith(format):
        raise ValueError(
            "For 'load_checkpoint', the checkpoint file format must same with 'format', "
            f"but got file_name:'{file_name}', format:'{format}'"
        )
    if not os.path.exists(path):
        raise errors.value_error(
            f"For 'load_checkpoint', the checkpoint file: {path} does not exist, please check whether the "
            "'ckpt_file_name' is correct."
        )
    return path


def _chooser(filter_prefix: Any, specify_prefix: Any, choice_func: Callable | None) -> Callable[[str], bool]:
    left_out, wanted = _prefixes(filter_prefix), _prefixes(specify_prefix)
    if left_out or wanted:
        _log.warning(
            "For load_checkpoint, 'filter_prefix' and 'specify_prefix' will be deprecated, "
            "please use `choice_func` instead."
        )

    def chosen(name: str) -> bool:
        if choice_func is not None and not left_out and not wanted:  # prefixes go before it
            return choice_func(name)
        return not name.startswith(left_out) and (not wanted or name.startswith(wanted))

    return chosen


def _prefixes(given: Any) -> tuple[str, ...]:
    prefixes = () if given is None else (given,) if isinstance(given, str) else given
    if not isinstance(prefixes, (list, tuple)) or not all(isinstance(p, str) for p in prefixes):
        raise TypeError(
            "For 'load_checkpoint', the type of 'specify_prefix' or 'filter_prefix' must be string, "
            f"list[string] or tuple[string], but got {type(given)}."
        )
    if "" in prefixes:
        raise ValueError("For 'load_checkpoint', 'specify_prefix' and 'filter_prefix' must not contain ''.")
    return tuple(prefixes)


def _loaded(name: str, value: Raw | str):
    return value if isinstance(value, str) else to_parameter(value, name)


__all__ = [
    "async_ckpt_thread_status",
    "load_checkpoint",
    "load_checkpoint_async",
    "load_param_into_net",
    "save_checkpoint",
]
