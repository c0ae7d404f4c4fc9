# Written by tools/gen_stubs.py.
from mycelia.dataset.utils.browse_dataset import imshow_det_bbox as imshow_det_bbox
from mycelia.dataset.utils.line_reader import LineReader as LineReader

__all__ = [
    "LineReader", "imshow_det_bbox",
]
