# Written by tools/gen_stubs.py.
from mycelia.engine.ops.layout_rules import (
    LayoutRule as LayoutRule, LayoutRule as _LayoutRule, along as along, float32_images as float32_images,
    formatted as formatted, images as images, is_image as is_image, keeps_order as keeps_order,
    nhwc_shape as nhwc_shape, reduction as reduction, rule_of as rule_of,
    same_attributes as same_attributes, where as where,
)
from typing import Any as Any

__all__ = [
    "AXIS", "Images", "LayoutRule", "along", "elementwise", "float32_images", "formatted", "images",
    "is_image", "keeps_order", "nhwc_shape", "reduction", "rule_of", "same_attributes", "where",
]

AXIS: dict
Images: Any
elementwise: _LayoutRule
