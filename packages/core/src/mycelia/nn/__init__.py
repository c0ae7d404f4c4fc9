"""Cells, layers, losses, optimizers and learning rate schedules under MindSpore's names."""

from mycelia.nn.cell import Cell, GraphCell
from mycelia.nn.container import CellDict, CellList, SequentialCell

__all__ = ["Cell", "CellDict", "CellList", "GraphCell", "SequentialCell"]
