"""A converted model as a MindIR file, for MindSpore and core: what was imported, written by core."""

from __future__ import annotations

import os
from dataclasses import fields

from mycelia.io import crypto
from mycelia.io.mindir import save
from mycelia.io.mindir.write import to_model
from mycelia_lite.converter.errors import Code, ConversionError, NotAvailable
from mycelia_lite.converter.options import Options
from mycelia_lite.converter.source import Source

#: Options that say how a `.ms` file is made, and have no meaning for this one.
_OF_TABLES = (
    "input_format", "output_format", "input_data_type", "output_data_type", "weight_fp16", "weight_bf16",
    "infer", "check",
    "pack_weights", "quantization",
)  # fmt: skip


def check(options: Options) -> None:
    """Errors: NotAvailable for an option that is of `.ms` files alone."""
    defaults = {f.name: f.default for f in fields(Options)}
    for name in _OF_TABLES:
        if getattr(options, name) != defaults[name]:
            raise NotAvailable(f"saveType=MINDIR: {name} is for .ms files alone")


def write(source: Source, path: str, options: Options) -> None:
    """Write the graph of a model to `path`, which ends in .mindir. MindIR has no names of outputs.

    The rules of the offline optimiser are of `.ms` files: both MindSpore and core have passes of their own.
    Errors: ConversionError for what MindIR cannot express, all of it in one, and for variables; OSError.
    """
    if source.states:
        raise NotAvailable("saveType=MINDIR: a model that keeps variables from run to run")
    try:
        model = to_model(source.graph, source.input_names, {})
    except ValueError as error:
        raise ConversionError(Code.NOT_SUPPORT, f"saveType=MINDIR: {error}") from None

    def encrypted(data: bytes) -> bytes:
        return crypto.encrypt(data, options.encrypt_key, "AES-GCM")

    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    save.write(model, [], path.removesuffix(".mindir"), encrypted if options.encrypt_key else None)
