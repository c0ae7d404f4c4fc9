"""What every importer gives: the model as core's IR, with the names of its inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycelia import errors
from mycelia.ir import Graph
from mycelia_lite.enums import FmkType


class NodePlace(errors.Place):
    """A node of a model's file, the location of the nodes that it becomes.

    `name`: as the file calls it. `same`: pads of its windows follow from the size, so that as many results as
    strides fit are there, with the smaller half in front; the pads of the nodes are those of one size.
    """

    __slots__ = ("name", "same")

    def __init__(self, file: str, number: int, name: str, kind: str, same: bool = False) -> None:
        super().__init__(file, number, f"'{name}' ({kind})")
        self.name, self.same = name, same

    def __reduce__(self):
        return errors.Place, (self.file, self.line, self.function)


@dataclass
class Source:
    """A model of another framework as a graph of `mycelia.ops`; its weights are constants.

    `halves`: the file held weights as float16 for operators of float32; they are stored so again.
    `scales`: of weights that were integers of 8 bits; they are stored so again.
    `meaning`: of inputs and outputs that are integers with scales, by name: (scales, zero points).
    `states`: first values of variables that a model keeps from run to run, or a `State` of the writer for
    each. They are the last parameters of the graph, and its last outputs are what they are after a run.
    `fixed`: the node, in words, for which the model holds for these sizes of its inputs alone; "" for none.
    """

    graph: Graph
    input_names: list[str]
    output_names: list[str]
    framework: FmkType
    halves: bool = False
    states: list[Any] = field(default_factory=list)
    fixed: str = ""
    scales: list[np.ndarray] = field(default_factory=list)
    meaning: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
