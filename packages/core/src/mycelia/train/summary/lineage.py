"""Lineage messages: what a training or evaluation was made of.  Each has `SerializeToString`."""

from __future__ import annotations

import json
from dataclasses import dataclass

from mycelia.engine.base.wire import field
from mycelia.train.summary.events import double, single, text


class Message:
    """A message of a lineage file."""

    def SerializeToString(self) -> bytes:
        """The bytes of the message."""
        raise NotImplementedError(f"{type(self).__name__} does not define SerializeToString()")

    def hyperparameters(self) -> dict[str, int | float | str]:
        """What it says of how a training was set up, by name."""
        return {}


def _given(make, number: int, value) -> bytes:
    return b"" if value is None else make(number, value)


@dataclass(slots=True)
class TrainLineage(Message):
    """A training: its parts by class name, its data, its loss and where the model was saved."""

    optimizer: str | None = None
    learning_rate: float | None = None
    loss_function: str | None = None
    epoch: int = 0
    parallel_mode: str = "stand_alone"
    device_num: int = 1
    batch_size: int | None = None
    dataset_path: str | None = None
    dataset_size: int | None = None
    network: str = ""
    loss: float | None = None
    model_path: str = ""  # JSON text
    model_size: int = 0  # bytes

    def SerializeToString(self) -> bytes:
        hyper = (
            _given(text, 1, self.optimizer)
            + _given(single, 2, self.learning_rate)
            + _given(text, 3, self.loss_function)
            + field(4, self.epoch)
            + text(5, self.parallel_mode)
            + field(6, self.device_num)
            + _given(field, 8, self.batch_size)
        )
        data = _given(text, 1, self.dataset_path) + _given(field, 2, self.dataset_size)
        algorithm = text(1, self.network) + _given(single, 2, self.loss)
        model = text(3, self.model_path) + field(4, self.model_size)
        return field(1, hyper) + field(2, data) + field(3, algorithm) + field(4, model)

    def hyperparameters(self) -> dict[str, int | float | str]:
        names = ("optimizer", "learning_rate", "loss_function", "epoch", "batch_size", "network")
        return {name: getattr(self, name) for name in names if getattr(self, name) not in (None, "")}


@dataclass(slots=True)
class EvaluationLineage(Message):
    """An evaluation: its metrics as JSON text, and its data."""

    metric: str = "{}"
    dataset_path: str | None = None
    dataset_size: int | None = None

    def SerializeToString(self) -> bytes:
        data = _given(text, 1, self.dataset_path) + _given(field, 2, self.dataset_size)
        return text(2, self.metric) + field(3, data)


@dataclass(slots=True)
class UserDefinedInfo(Message):
    """Custom entries: name -> int, float or text."""

    entries: dict

    def SerializeToString(self) -> bytes:
        out = b""
        for name, value in self.entries.items():
            if isinstance(value, int):
                number, content = 3, field(2, value)
            elif isinstance(value, float):
                number, content = 5, double(2, value)
            else:
                number, content = 4, text(2, str(value))
            out += field(1, field(number, text(1, name) + content))
        return out

    def hyperparameters(self) -> dict[str, int | float | str]:
        return dict(self.entries)


@dataclass(slots=True)
class DatasetGraph(Message):
    """A dataset's operations and their parameters: `described` as `Dataset.to_json` gives it."""

    described: dict

    def SerializeToString(self) -> bytes:
        return _node(self.described)


_PARTS = ("children", "operations", "sampler")
_ROWS, _WEIGHTS = 2, 3  # fields of a sampler


def _node(table: dict) -> bytes:
    out = b"".join(field(1, _node(child)) for child in table.get("children", ()))
    out += field(2, _parameters({k: v for k, v in table.items() if k not in _PARTS}))
    out += b"".join(field(3, _operation(op)) for op in table.get("operations", ()))
    return out + (field(4, _operation(table["sampler"])) if "sampler" in table else b"")


def _operation(table: dict) -> bytes:
    """An operation of a map, or a sampler with the rows or weights that it lists."""
    # Real files tell the module of a user's function only, and an operation's arguments as JSON.
    if str(table.get("python_module", "")).startswith("mycelia."):
        table = {k: v for k, v in table.items() if k != "python_module"}
    out = field(1, _parameters({k: v for k, v in table.items() if k not in ("indices", "weights")}))
    out += b"".join(field(_ROWS, int(row)) for row in table.get("indices", ()))
    return out + b"".join(single(_WEIGHTS, weight) for weight in table.get("weights", ()))


def _parameters(table: dict) -> bytes:
    """Texts, lists, bools, ints and floats by name, each kind in a map of its own."""
    out = b""
    for name, value in table.items():
        if isinstance(value, list):
            if not value:
                continue
            number, content = 2, field(2, b"".join(text(1, json.dumps(item)) for item in value))
        elif isinstance(value, (bool, int)):
            number, content = 3 if isinstance(value, bool) else 4, field(2, int(value))
        elif isinstance(value, float):
            number, content = 5, double(2, value)
        else:
            number, content = 1, text(2, value if isinstance(value, str) else json.dumps(value))
        out += field(number, text(1, name) + content)
    return out


#: What `SummaryRecord.add_value` calls a lineage message -> its field in a LineageEvent.
FIELDS = {"train_lineage": 6, "eval_lineage": 7, "dataset_graph": 9, "custom_lineage_data": 10}
