"""`mycelia-lite convert`: options of `converter_lite`, as `--modelFile=...` and as `--model-file ...`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from mycelia_lite.commands.options import option as _option
from mycelia_lite.commands.options import spellings

_SWITCHES = (
    "fp16",
    "bf16",
    "trainModel",
    "optimizeTransformer",
    "infer",
    "check",
    "encryption",
    "packWeights",
)


class ConvertCommand(TyperCommand):
    """Takes switches without a value, too: `--fp16` is `--fp16=on`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        bare = {spelling for name in _SWITCHES for spelling in spellings(name)}
        values = ("on", "off", "true", "false")
        for i, argument in enumerate(args):
            if argument in bare and (i + 1 == len(args) or args[i + 1] not in values):
                args[i] = f"{argument}=on"
        return super().parse_args(ctx, args)


Text = str | None


def convert(
    fmk: Annotated[
        Text, _option("fmk", "Framework of the model: CAFFE, MINDIR, MSLITE, ONNX, PYTORCH, TF, TFLITE.")
    ] = None,
    modelFile: Annotated[Text, _option("modelFile", "The model; of CAFFE the .prototxt.")] = None,
    weightFile: Annotated[Text, _option("weightFile", "The .caffemodel of a model of CAFFE.")] = None,
    outputFile: Annotated[Text, _option("outputFile", "Where the result goes; .ms is added.")] = None,
    configFile: Annotated[
        Text, _option("configFile", "A file with [registry], or one [model_param] for each model.")
    ] = None,
    inputShape: Annotated[Text, _option("inputShape", 'Shapes of inputs: "x:1,1,32,32;y:1,4".')] = None,
    inputDataFormat: Annotated[
        Text, _option("inputDataFormat", "NHWC or NCHW: inputs of rank 4; else as in the source.")
    ] = None,
    outputDataFormat: Annotated[Text, _option("outputDataFormat", "The same for outputs.")] = None,
    inputDataType: Annotated[
        Text,
        _option("inputDataType", "FLOAT, FLOAT16, INT8, UINT8, INT32, INT64, or DEFAULT: as in the source."),
    ] = None,
    outputDataType: Annotated[Text, _option("outputDataType", "The same for outputs.")] = None,
    fp16: Annotated[Text, _option("fp16", "on: float32 constants are stored as float16.")] = None,
    bf16: Annotated[Text, _option("bf16", "on: float32 constants are stored as bfloat16.")] = None,
    trainModel: Annotated[Text, _option("trainModel", "A training graph; not there.")] = None,
    saveType: Annotated[Text, _option("saveType", "MINDIR_LITE (.ms), or MINDIR.")] = None,
    optimize: Annotated[Text, _option("optimize", "general, or none: no fusions.")] = None,
    optimizeTransformer: Annotated[
        Text,
        _option("optimizeTransformer", "true: attention becomes one node, which MindSpore Lite refuses."),
    ] = None,
    infer: Annotated[Text, _option("infer", "true: run the result before it is written.")] = None,
    check: Annotated[
        Text, _option("check", "true: compare the result with the source on random inputs.")
    ] = None,
    tolerance: Annotated[
        Text, _option("tolerance", "How far an output may depart when it is checked, by its greatest value.")
    ] = None,
    encryption: Annotated[Text, _option("encryption", "true or false; true with a key.")] = None,
    encryptKey: Annotated[Text, _option("encryptKey", "32, 48 or 64 hexadecimal digits.")] = None,
    decryptKey: Annotated[Text, _option("decryptKey", "The key of an encrypted MINDIR.")] = None,
    decryptMode: Annotated[Text, _option("decryptMode", "AES-GCM or AES-CBC.")] = None,
    device: Annotated[Text, _option("device", "Passes for another device; not there.")] = None,
    weightsApart: Annotated[
        Text, _option("weightsApart", "Bytes above which weights go to a file beside the model.")
    ] = None,
    packWeights: Annotated[
        Text, _option("packWeights", "on: weights as this runtime's kernels read them, for a shorter load.")
    ] = None,
    signature: Annotated[
        Text, _option("signature", "The entry point of a TFLITE file; else its primary graph.")
    ] = None,
    withoutFusions: Annotated[
        Text, _option("withoutFusions", "Fusions that are left out, with commas.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Write nothing, but list all that hinders the conversion.")
    ] = False,
) -> None:
    """Convert a model of another framework to a .ms file.

    Every option has two spellings: --modelFile=net.onnx and --model-file net.onnx. With --configFile alone
    all models of its [model_param] sections are converted.
    """
    texts = {name: value for name, value in locals().items() if isinstance(value, str)}
    from mycelia_lite.commands import conversion

    if code := conversion.explain(texts) if explain else conversion.convert(texts):
        raise typer.Exit(code)
