"""What every importer gives: the model as core's IR, with the names of its inputs and outputs."""

from __future__ import annotations

from dataclasses import dataclass

from mycelia.ir import Graph
from mycelia_lite.enums import FmkType


@dataclass
class Source:
    """A model of another framework as a graph of `mycelia.ops`; its weights are constants.

    `halves`: the file held weights as float16 for operators that take float32; they are stored so again.
    """

    graph: Graph
    input_names: list[str]
    output_names: list[str]
    framework: FmkType
    halves: bool = False
