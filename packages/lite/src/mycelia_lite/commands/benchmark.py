"""`mycelia-lite benchmark`: options of MindSpore Lite's tool in both spellings."""

from __future__ import annotations

from typing import Annotated

import typer

from mycelia_lite.commands.options import in_words, option

Text = str
_SWITCHES = ("enableFp16", "enableParallel", "timeProfiling", "perfProfiling", "enableParallelPredict")


def benchmark(
    modelFile: Annotated[Text, option("modelFile", "The .ms file.")],
    modelType: Annotated[Text, option("modelType", "MindIR or MindIR_Lite.")] = "MindIR",
    inDataFile: Annotated[Text, option("inDataFile", "Raw files of the inputs, with commas.")] = "",
    inputShapes: Annotated[Text, option("inputShapes", "Shapes: 1,32,32,3:1,10.")] = "",
    device: Annotated[Text, option("device", "CPU.")] = "CPU",
    numThreads: Annotated[int, option("numThreads", "Threads of a run.")] = 2,
    cpuBindMode: Annotated[
        int, option("cpuBindMode", "1: fast cores first, 2: slow ones first, 0: no binding.")
    ] = 1,
    cpuCoreList: Annotated[Text, option("cpuCoreList", "Cores of the threads, with commas.")] = "",
    enableFp16: Annotated[Text, option("enableFp16", "true: 16-bit arithmetic where it is there.")] = "false",
    enableParallel: Annotated[
        Text, option("enableParallel", "true: independent nodes at the same time.")
    ] = "false",
    interOpParallelNum: Annotated[int, option("interOpParallelNum", "Nodes at the same time.")] = 1,
    loopCount: Annotated[int, option("loopCount", "Runs that are measured.")] = 10,
    warmUpLoopCount: Annotated[int, option("warmUpLoopCount", "Runs before them.")] = 3,
    timeProfiling: Annotated[Text, option("timeProfiling", "true: times of nodes and of types.")] = "false",
    perfProfiling: Annotated[
        Text, option("perfProfiling", "Counters of the processor; not there.")
    ] = "false",
    benchmarkDataFile: Annotated[Text, option("benchmarkDataFile", "Golden outputs to compare with.")] = "",
    benchmarkDataType: Annotated[Text, option("benchmarkDataType", "FLOAT, INT32, INT8, UINT8.")] = "FLOAT",
    accuracyThreshold: Annotated[float, option("accuracyThreshold", "Largest mean bias in percent.")] = 0.5,
    cosineDistanceThreshold: Annotated[
        float, option("cosineDistanceThreshold", "Least cosine; -1.1: any.")
    ] = -1.1,
    enableParallelPredict: Annotated[
        Text, option("enableParallelPredict", "true: clients load a parallel runner.")
    ] = "false",
    parallelNum: Annotated[int, option("parallelNum", "Clients.")] = 2,
    parallelTaskNum: Annotated[int, option("parallelTaskNum", "Tasks of each client.")] = 2,
    workersNum: Annotated[int, option("workersNum", "Workers of the runner.")] = 2,
    decryptKey: Annotated[Text, option("decryptKey", "32, 48 or 64 hexadecimal digits.")] = "",
    cryptoLibPath: Annotated[
        Text, option("cryptoLibPath", "Not needed: the runtime decrypts by itself.")
    ] = "",
    configFile: Annotated[Text, option("configFile", "Configuration of the model.")] = "",
) -> None:
    """Measure a .ms model, compare it with golden outputs, or dump what its nodes compute."""
    given = locals()
    from mycelia_lite.benchmark import BenchmarkError, Options, run

    try:
        for name in _SWITCHES:
            if given[name] not in ("true", "false"):
                raise BenchmarkError(f"{name} must be true or false, but got {given[name]!r}")
            given[name] = given[name] == "true"
        del given["cryptoLibPath"]
        run(Options(**{in_words(name, "_"): value for name, value in given.items()}), typer.echo)
    except (BenchmarkError, RuntimeError, ValueError, OSError) as error:
        typer.echo(f"benchmark failed: {error}", err=True)
        raise typer.Exit(1) from None
