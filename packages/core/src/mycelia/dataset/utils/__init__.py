"""Helpers around datasets: lines of a file by number, pictures with boxes."""

from mycelia.dataset.utils.browse_dataset import imshow_det_bbox
from mycelia.dataset.utils.line_reader import LineReader

__all__ = ["LineReader", "imshow_det_bbox"]
