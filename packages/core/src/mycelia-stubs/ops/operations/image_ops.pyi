# Written by tools/gen_stubs.py.
from mycelia.ops.operations import (
    AffineGrid as AffineGrid, CropAndResize as CropAndResize, GridSampler2D as GridSampler2D,
    GridSampler3D as GridSampler3D, ResizeArea as ResizeArea, ResizeBicubic as ResizeBicubic,
    ResizeBilinearV2 as ResizeBilinearV2, ResizeLinear1D as ResizeLinear1D,
    ResizeNearestNeighbor as ResizeNearestNeighbor, ResizeNearestNeighborV2 as ResizeNearestNeighborV2,
    ScaleAndTranslate as ScaleAndTranslate, UpsampleNearest3D as UpsampleNearest3D,
    UpsampleTrilinear3D as UpsampleTrilinear3D,
)
from mycelia.ops.primitives.checks import (
    anything as anything, boolean as boolean, choice as choice, integers as integers, real as real,
)
from mycelia.ops.primitives.define import primitive as primitive, table as table

__all__ = [
    "AffineGrid", "CropAndResize", "GridSampler2D", "GridSampler3D", "ResizeArea", "ResizeBicubic",
    "ResizeBilinearV2", "ResizeLinear1D", "ResizeNearestNeighbor", "ResizeNearestNeighborV2",
    "ScaleAndTranslate", "UpsampleNearest3D", "UpsampleTrilinear3D", "anything", "boolean", "choice",
    "integers", "primitive", "real", "table",
]
