"""The converter: importers of other frameworks' models, fusions, and the writer of `.ms` files."""

from __future__ import annotations

from mycelia_lite.converter.convert import Report, convert, parse_shapes
from mycelia_lite.converter.errors import Code, ConversionError
from mycelia_lite.enums import FmkType

__all__ = ["Code", "ConversionError", "Converter", "Report", "convert", "parse_shapes"]


class Converter:
    """MindSpore Lite's converter as a class: properties, then `convert`."""

    def __init__(self) -> None:
        self._shapes: dict[str, list[int]] = {}

    @property
    def input_shape(self) -> dict[str, list[int]]:
        """Shapes of inputs by name; -1 leaves a size open.  Errors: TypeError for another value."""
        return self._shapes

    @input_shape.setter
    def input_shape(self, shapes: dict[str, list[int]]) -> None:
        if not isinstance(shapes, dict):
            raise TypeError(f"input_shape must be a dict, but got {type(shapes).__name__}")
        for name, sizes in shapes.items():
            if not isinstance(name, str) or not all(type(n) is int for n in sizes):
                raise TypeError(f"input_shape must have names and lists of int, but got {name!r}: {sizes!r}")
        self._shapes = {name: list(sizes) for name, sizes in shapes.items()}

    def convert(
        self,
        fmk_type: FmkType,
        model_file: str,
        output_file: str,
        weight_file: str = "",
        config_file: str = "",
    ) -> Report:
        """Convert a model file; `output_file` gets the suffix `.ms`.

        Errors: TypeError for arguments of other types, NotImplementedError for what is not there yet,
        ConversionError (a RuntimeError) with the code and the reason.
        """
        if not isinstance(fmk_type, FmkType):
            raise TypeError(f"fmk_type must be an FmkType, but got {type(fmk_type).__name__}")
        for name, value in (("model_file", model_file), ("output_file", output_file)):
            if not isinstance(value, str):
                raise TypeError(f"{name} must be a str, but got {type(value).__name__}")
        if weight_file:
            raise NotImplementedError("weight_file: models of CAFFE cannot be imported yet")
        if config_file:
            raise NotImplementedError("config_file: the converter reads no configuration file yet")
        return convert(fmk_type, model_file, output_file, self._shapes)
