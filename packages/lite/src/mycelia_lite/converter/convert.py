"""From a model file of another framework to a `.ms` file."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mycelia_lite import format as ms_format
from mycelia_lite.converter import (
    borders,
    config,
    integers,
    mindir,
    obstacles,
    optimise,
    panels,
    storage,
    training_file,
    trial,
)
from mycelia_lite.converter.comparison import Check, Departure, FileCheck, SourceCheck
from mycelia_lite.converter.errors import Code, ConversionError, NotAvailable
from mycelia_lite.converter.importers import FRAMEWORKS, importer, mslite
from mycelia_lite.converter.options import Options, from_texts, invalid
from mycelia_lite.converter.rules import RULES
from mycelia_lite.converter.source import Source
from mycelia_lite.converter.writer import Writer
from mycelia_lite.enums import FmkType, ModelType
from mycelia_lite.quant import (
    DynamicQuantization,
    FullQuantization,
    Layer,
    Result,
    quantize_dynamic,
    quantize_full,
    quantize_weights,
    report,
)


@dataclass(frozen=True)
class Report:
    """What a conversion did.

    `fusions`: how often each rule of the optimiser fired; `transposes`: how many there were before it and are
    after it; `parts`: names of the nodes that each fused node stands for; `departures`: what `check` found;
    `layers`: what became of weights that were to be quantized; `quantized`: of data, too.
    """

    path: str
    fusions: Mapping[str, int]
    transposes: tuple[int, int]
    parts: Mapping[str, tuple[str, ...]]
    departures: Sequence[Departure] = ()
    layers: Sequence[Layer] = ()
    quantized: Result | None = None


@dataclass(frozen=True)
class Job:
    """A model to convert. `model_file`: its path, or an ExportedProgram; `weight_file`: of CAFFE."""

    framework: FmkType
    model_file: Any
    output_file: str
    weight_file: str = ""
    options: Options = Options()

    @property
    def path(self) -> str:
        """The file that is written."""
        suffix = ".mindir" if self.options.save_type is ModelType.MINDIR else ".ms"
        return self.output_file if self.output_file.endswith(suffix) else self.output_file + suffix


def convert(
    framework: FmkType,
    model_file: str,
    output_file: str,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    without_fusions: Collection[str] = (),
    weight_file: str = "",
    **options: Any,
) -> Report:
    """Write the model of `model_file` to `output_file`, whose name gets the suffix `.ms` (`.mindir`).

    `options`: other fields of `Options`.
    Errors: ConversionError with the code and the reason; then nothing is written.
    """
    how = Options(input_shape=input_shapes or {}, without_fusions=without_fusions, **options)
    return run(Job(framework, model_file, output_file, weight_file, how))


def run(job: Job) -> Report:
    """Do one conversion. Errors: ConversionError, OSError; then nothing is written."""
    check(job)
    try:
        return _run(job)
    except ms_format.FormatError as error:  # such as a name that is no text
        raise ConversionError(Code.GRAPH_FILE_ERROR, f"no file can hold the model: {error}") from error


def _run(job: Job) -> Report:
    if job.options.save_type is ModelType.MINDIR:
        mindir.write(_source(job), job.path, job.options)
        return Report(job.path, {}, (0, 0), {})
    if job.options.train:
        model = training_file.make(job.model_file, job.options)
        storage.write(job.path, model, job.options.encrypt_key, job.options.weights_apart)
        return Report(job.path, {}, (0, 0), {})
    model, kept, comparison = _imported(job)
    written = model.copy() if comparison else model
    done, layers, result = _finish(model, job, kept)
    if job.options.infer:
        trial.run(model)
    departures: Sequence[Departure] = ()
    if comparison:
        try:
            departures = comparison.run(model, written)
        except ConversionError as error:
            fired = [name for name, count in done.fired.items() if count]
            if guilty := _guilty(job, comparison, written, fired):
                error.args = (f"{error.args[0]}; without {guilty} it does not depart",)
            raise
    storage.write(job.path, model, job.options.encrypt_key, job.options.weights_apart)
    if (how := job.options.quantization) is not None and how.report:
        report.write(how.report, layers, result, how.calibration if result is not None else ())
    return Report(job.path, done.fired, done.transposes, done.parts, departures, layers, result)


def _finish(
    model: ms_format.Table, job: Job, kept: Kept | None, without: Collection[str] = ()
) -> tuple[optimise.Optimised, Sequence[Layer], Result | None]:
    """Borders, the optimiser but the rules in `without`, and storage, in place; what the optimiser did, and
    what became of weights and data that are quantized.

    `kept`: what is stored as in the source.
    """
    borders.run(model, job.framework, job.options)
    known = None
    if job.framework is FmkType.MSLITE:  # its shapes are the file's, unless inputShape led to new ones
        known = 1 if job.options.input_shape else 0
    done = optimise.run(model, _left_out(job.options, without), known)
    if kept is not None:
        integers.store(model, kept.scales)
    layers: Sequence[Layer] = ()
    result = None
    if (how := job.options.quantization) is not None:
        try:
            if isinstance(how, FullQuantization):
                result = quantize_full(model, how)
                layers = result.layers
            elif isinstance(how, DynamicQuantization):
                layers = quantize_dynamic(model, how)
            else:
                layers = quantize_weights(model, how)
        except ValueError as error:
            raise ConversionError(Code.INPUT_PARAM_INVALID, f"quantization: {error}") from error
    if job.options.weight_bf16:
        storage.brains(model)
    elif job.options.weight_fp16 or (kept is not None and kept.halves):
        storage.halve(model, exactly=not job.options.weight_fp16)
    if job.options.pack_weights:
        panels.pack(model)
    return done, layers, result


def _left_out(options: Options, without: Collection[str]) -> tuple[str, ...]:
    """Names of the rules that do not run."""
    more = () if options.optimize_transformer else optimise.TRANSFORMER
    return (*options.without_fusions, *without, *more)


def _guilty(job: Job, comparison: Check, written: ms_format.Table, fired: Sequence[str]) -> str:
    """The fusion without which the result does not depart from the source; "" if there is none."""
    for name in fired:
        model = written.copy()
        _finish(model, job, None, without=(name,))
        try:
            comparison.run(model, written)
        except ConversionError:
            continue
        return name
    return ""


def check(job: Job) -> None:
    """Look at what needs no model to be read. Errors: ConversionError."""
    if job.framework not in (*FRAMEWORKS, FmkType.MSLITE):
        there = ", ".join(f.name for f in (*FRAMEWORKS, FmkType.MSLITE))
        raise NotAvailable(
            f"models of {job.framework.name} cannot be imported yet: there is an importer for {there}"
        )
    if isinstance(job.model_file, str) and not os.path.isfile(job.model_file):
        raise ConversionError(Code.INPUT_PARAM_INVALID, f"the model file {job.model_file} does not exist")
    if job.framework is FmkType.CAFFE and not job.weight_file:
        raise ConversionError(Code.INPUT_PARAM_INVALID, "a model of CAFFE needs a weightFile")
    if job.weight_file:
        if job.framework is not FmkType.CAFFE:
            raise ConversionError(
                Code.INPUT_PARAM_INVALID, f"weightFile is for models of CAFFE, not of {job.framework.name}"
            )
        if not os.path.isfile(job.weight_file):
            raise ConversionError(
                Code.INPUT_PARAM_INVALID, f"the weight file {job.weight_file} does not exist"
            )
    if job.options.save_type is ModelType.MINDIR:
        if job.framework is FmkType.MSLITE:
            raise NotAvailable("saveType=MINDIR: a .ms file stays tables, and is written as one")
        mindir.check(job.options)
    if job.options.train:
        training_file.check(job.options, job.framework)
    if job.options.check and job.options.quantization is not None and not job.options.tolerance:
        raise ConversionError(
            Code.INPUT_PARAM_INVALID, "check: quantized weights depart from the source: give a tolerance"
        )
    if job.options.weight_fp16 and job.options.weight_bf16:
        raise ConversionError(
            Code.INPUT_PARAM_INVALID, "fp16 and bf16 are both on: constants are stored once"
        )
    if job.options.signature and job.framework is not FmkType.TFLITE:
        raise ConversionError(
            Code.INPUT_PARAM_INVALID, f"signature is for models of TFLITE, not of {job.framework.name}"
        )
    if os.path.isdir(job.path) or os.path.isdir(job.output_file):
        raise ConversionError(Code.INPUT_PARAM_INVALID, f"the output file {job.output_file} is a folder")
    folder = os.path.dirname(os.path.abspath(job.path))
    if not os.path.isdir(folder):
        raise ConversionError(
            Code.INPUT_PARAM_INVALID, f"the folder of the output file, {folder}, does not exist"
        )
    for name in job.options.without_fusions:
        if name not in optimise.RULES and name not in optimise.ABSENT:
            raise ConversionError(
                Code.INPUT_PARAM_INVALID, f"no fusion is called '{name}': there are {sorted(optimise.RULES)}"
            )
    if job.options.decrypt_key and job.framework is not FmkType.MINDIR:
        raise ConversionError(
            Code.INPUT_PARAM_INVALID, f"decryptKey is for models of MINDIR, not of {job.framework.name}"
        )


def explain(job: Job) -> list[ConversionError]:
    """All that hinders a conversion, each with its node; none if it is possible. Nothing is written.

    A model of MINDIR is read as a whole: the first fault of the file ends the search.
    """
    with obstacles.collected() as found:
        try:
            check(job)
            model, kept, _ = _imported(replace(job, options=replace(job.options, check=False)))
            if not found:
                _finish(model, job, kept)
                trial.loaded(model)
        except ConversionError as error:
            if not found:
                found.append(error)
        except RuntimeError as error:
            found.append(ConversionError(Code.ERROR, f"the result cannot be loaded: {error}"))
    return found


@dataclass(frozen=True)
class Kept:
    """How the source stored weights: `halves`, some as float16; `scales` of those of 8 bits."""

    halves: bool
    scales: Sequence[Any]


def _source(job: Job) -> Source:
    """The model as core's IR."""
    more: dict[str, Any] = {}
    if job.framework is FmkType.CAFFE:
        more["weight_file"] = job.weight_file
    if job.options.signature:
        more["signature"] = job.options.signature
    if job.options.decrypt_key:
        more |= {"key": job.options.decrypt_key, "mode": job.options.decrypt_mode}
    return importer(job.framework)(job.model_file, job.options.input_shape, **more)


def _imported(job: Job) -> tuple[ms_format.Table, Kept, Check | None]:
    """The model as tables, not optimized yet, how the source stored weights, and what compares the model with
    its source if that is asked for.
    """
    if job.framework is FmkType.MSLITE:
        model = mslite.load(job.model_file, job.options.input_shape)
        kept = Kept(False, integers.restore(model))
        return model, kept, FileCheck(model, job.options) if job.options.check else None
    source = _source(job)
    writer = Writer(source)
    if not job.options.check:
        return writer.run(RULES), Kept(source.halves, source.scales), None

    def with_sizes(shapes: Mapping[str, Sequence[int]]) -> Source:
        return _source(replace(job, options=replace(job.options, input_shape=shapes)))

    comparison = SourceCheck(source, job.options, job.model_file, writer, with_sizes)
    return writer.run(RULES), Kept(source.halves, source.scales), comparison


def jobs(texts: Mapping[str, str], config_file: str = "") -> Iterator[Job]:
    """The conversions that options of the command line, by their camel-case names, ask for.

    They are one, or those of the file's `[model_param]` sections. Errors: ConversionError.
    """
    settings = config.read(config_file) if config_file else config.Config()
    if settings.models:
        if texts:
            raise ConversionError(
                Code.INPUT_PARAM_INVALID,
                f"configFile: [model_param] names the models, so no other option may be given, "
                f"but there is {next(iter(texts))}",
            )
        found = [_job(values, settings, f"{place}: ") for place, values in settings.models]
        yield from found
    else:
        yield _job(texts, settings, "")


def _job(texts: Mapping[str, str], settings: config.Config, place: str) -> Job:
    try:
        values = dict(texts)
        for name in ("fmk", "modelFile", "outputFile"):
            if not values.get(name):
                raise ConversionError(Code.INPUT_PARAM_INVALID, f"{name} is missing")
        framework, model_file, output_file = (values.pop(n) for n in ("fmk", "modelFile", "outputFile"))
        weight_file = values.pop("weightFile", "")
        if framework not in FmkType.__members__:
            raise invalid("fmk", f"one of {', '.join(FmkType.__members__)}", framework)
        options = with_fusions(from_texts(values), settings)
        return Job(FmkType[framework], model_file, output_file, weight_file, options)
    except ConversionError as error:
        if place:
            error.args = (place + error.args[0],)
        raise


def with_fusions(options: Options, settings: config.Config) -> Options:
    """The options and what a configuration file says, without fusions that it or `optimize` leaves out."""
    options = replace(
        options,
        pack_weights=options.pack_weights or settings.pack_weights,
        quantization=config.quantization_of(settings) or options.quantization,
    )
    left_out = settings.without_fusions
    if left_out is None or options.optimize == "none":
        return replace(options, without_fusions=tuple(optimise.RULES))
    return replace(options, without_fusions=(*options.without_fusions, *left_out))
