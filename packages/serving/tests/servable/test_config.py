"""`servable_config.py`: what it declares in both styles, and what is wrong with it."""

from __future__ import annotations

import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest

from mycelia_serving.servable import config
from mycelia_serving.servable.declaration import Function
from mycelia_serving.servable.model import Model

HEAD = """
import numpy as np
from mycelia_serving.servable import register
"""
MODEL = HEAD + 'model = register.declare_model("add.mindir", "MindIR")\n'


@pytest.fixture
def declare(tmp_path):
    """Imports a config and returns what it declares."""
    loaded = []

    def load(text: str, name: str = "demo", **files: str):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "servable_config.py").write_text(text)
        for file, content in files.items():
            (folder / f"{file}.py").write_text(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            declaration = config.load_config(str(tmp_path), name)
        loaded.append(declaration)
        return declaration

    yield load
    for declaration in loaded:
        config.unload(declaration)


def method(body: str, head: str = MODEL, outputs: str = '"y"', arguments: str = "x1, x2") -> str:
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"{head}\n@register.register_method(output_names={outputs})\ndef predict({arguments}):\n{lines}\n"


# ---- what is declared --------------------------------------------------------------------------------------


def test_stages_know_their_inputs_and_outputs(declare):
    text = MODEL + textwrap.dedent("""
        def split(x):
            return x + 1, x - 1

        @register.register_method(output_names=["low", "sum"], retry=False, default=True)
        def predict(x):
            high, low = register.add_stage(split, x, outputs_count=2, tag="Preprocess")
            total = register.add_stage(model, high, low, outputs_count=1)
            return low, total
    """)
    found = declare(text)
    predict = found.methods["predict"]
    assert predict.inputs == ("x",) and predict.outputs == ("low", "sum")
    first, second = predict.stages
    assert isinstance(first.target, Function) and first.target.name == "split" and first.tag == "Preprocess"
    assert (first.inputs, first.outputs) == ((0,), (1, 2))
    assert isinstance(second.target, Model) and (second.inputs, second.outputs) == ((1, 2), (3,))
    assert predict.results == (2, 3)
    assert (predict.retry, predict.default) == (False, True)


def test_the_older_style_reads_the_number_of_outputs_from_the_assignment(declare):
    text = """
from mycelia_serving.servable import register

def cast(x1, x2):
    return x1, x2

def both(instances):
    for y, in instances:
        yield y, y

register.declare_servable(servable_file="add.mindir", model_format="mindir", with_batch_dim=False)

@register.register_method(output_names=["y", "z"])
def add_cast(x1, x2):
    \"\"\"Casts, adds, doubles.\"\"\"
    x1, x2 = register.call_preprocess(cast, x1, x2)
    y = register.call_servable(x1, x2)
    y, z = register.call_postprocess_pipeline(both, y)
    return y, z
"""
    stages = declare(text).methods["add_cast"].stages
    assert [len(stage.outputs) for stage in stages] == [2, 1, 2]
    assert [stage.batch_size for stage in stages] == [None, None, 0]
    assert [stage.tag for stage in stages] == ["Preprocess", "", "Postprocess"]


def test_the_older_style_may_return_a_call(declare):
    found = declare(method("return register.call_servable(x1, x2)", outputs='["y", "z"]'))
    assert len(found.methods["predict"].stages[0].outputs) == 2


def test_a_method_may_have_conditions_when_it_says_outputs_count(declare):
    body = """
        y = x1
        for _ in range(3):
            y = register.add_stage(model, y, x2, outputs_count=1)
        return y
    """
    assert len(declare(method(body)).methods["predict"].stages) == 3


def test_a_method_may_have_no_stage(declare):
    found = declare(method("return x2", head=HEAD))
    assert found.methods["predict"].results == (1,)


def test_functions_may_be_given_by_name(declare):
    body = """
        y = register.add_stage("argmax", x1, outputs_count=1)
        return y
    """
    function = declare(method(body, head=HEAD, arguments="x1")).methods["predict"].stages[0].target
    result = function.call(np.array([[1, 5], [2, 3]], np.float32))
    assert result.dtype == np.int64 and result.shape == () and result == 1


def test_a_servable_may_be_called_like_a_module_of_python(declare):
    declare(method("return x1"), name="json")
    assert sys.modules["json"].__name__ == "json" and hasattr(sys.modules["json"], "loads")


def test_a_config_may_import_files_beside_it(declare):
    text = HEAD + "from .labels import LABELS\n" + method("return x1", head="")
    found = declare(text, labels="LABELS = ['a', 'b']")
    assert found.module.LABELS == ["a", "b"]
    config.unload(found)
    assert not [name for name in sys.modules if name.startswith("_mycelia_servable_demo")]


def test_each_load_imports_anew(declare):
    first, second = declare(method("return x1")), declare(method("return x1"))
    assert first.module is not second.module and first.models[0] is not second.models[0]


def test_options_of_models_are_kept(declare):
    text = HEAD + textwrap.dedent("""
        context = register.Context(thread_num=2, thread_affinity_core_list=[0, 1], enable_parallel=True)
        context.append_device_info(register.CPUDeviceInfo(precision_mode="origin"))
        context.append_device_info(register.AscendDeviceInfo(input_format="NCHW", output_type="FP16"))
        a = register.declare_model(["a.mindir", "b.mindir"], "MindIR", context=context, max_batch_delay_ms=3,
                                   without_batch_dim_inputs=[1, 2], allow_reshape=True)
        options = register.GpuOptions(precision_mode="fp16")
        b = register.model.append_model("c.ms", "MindIR_Lite", options=options)
    """)
    a, b = (model.declared for model in declare(method("return x1", head=text)).models)
    assert a.key == "a.mindir;b.mindir" and a.unbatched == (1, 2) and a.format == "mindir"
    assert (a.max_batch_delay_ms, a.allow_reshape) == (3, True)
    assert a.context.thread_num == 2 and a.context.thread_affinity_core_list == (0, 1)
    assert a.context.device_infos["ascend"].options() == {"input_format": "NCHW", "output_type": "FP16"}
    assert b.context.device_infos["gpu"].options() == {"precision_mode": "fp16"}


def test_the_older_names_warn(tmp_path):
    (tmp_path / "demo").mkdir()
    text = method(
        "y = register.call_servable(x1, x2)\nreturn y",
        head=HEAD + ('register.declare_servable(servable_file="add.mindir", model_format="MindIR")\n'),
    )
    (tmp_path / "demo" / "servable_config.py").write_text(text)
    with pytest.warns(DeprecationWarning) as caught:
        config.unload(config.load_config(str(tmp_path), "demo"))
    messages = " ".join(str(w.message) for w in caught)
    assert "declare_servable is deprecated" in messages and "call_servable is deprecated" in messages


# ---- what is wrong -----------------------------------------------------------------------------------------

STAGE = "y = register.add_stage({})\nreturn y"
FUNCTION = MODEL + "def f(a, b):\n    return a\n"
TWICE = FUNCTION + "def g(instances):\n    return instances\n"

WRONG = {
    "no method": (HEAD, "no method is registered"),
    "syntax": ("x = = 1", r"servable_config.py, line 1: SyntaxError"),
    "import": ("import no_such_module_here", "No module named 'no_such_module_here'"),
    "exception": (HEAD + "\n1 / 0", r"line 5: ZeroDivisionError: division by zero"),
    "exit": ("import sys\nsys.exit(3)", "SystemExit: 3"),
    "format": (HEAD + 'register.declare_model("a.x", "tflite")', "'model_format' should be one of.*'tflite'"),
    "file": (HEAD + 'register.declare_model("", "MindIR")', "'model_file' should not be empty"),
    "file type": (
        HEAD + 'register.declare_model(3, "MindIR")',
        "'model_file' should be str or tuple/list of str",
    ),
    "file twice": (
        MODEL + 'register.declare_model("add.mindir", "MindIR")',
        "'add.mindir' was declared before",
    ),
    "batch": (
        HEAD + 'register.declare_model("a", "MindIR", with_batch_dim=1)',
        "'with_batch_dim' should be bool",
    ),
    "unbatched": (
        HEAD + 'register.declare_model("a", "MindIR", without_batch_dim_inputs=-1)',
        "'without_batch_dim_inputs' should be >= 0",
    ),
    "unbatched twice": (
        HEAD + 'register.declare_model("a", "MindIR", without_batch_dim_inputs=(1, 1))',
        "holds 1 more than once",
    ),
    "unbatched without batch": (
        HEAD + 'register.declare_model("a", "MindIR", with_batch_dim=False, without_batch_dim_inputs=1)',
        "only for models with 'with_batch_dim'",
    ),
    "context": (HEAD + 'register.declare_model("a", "MindIR", context=3)', "'context' should be Context"),
    "options": (
        HEAD + 'register.declare_model("a", "MindIR", options=3)',
        "'options' should be AclOptions or",
    ),
    "delay": (
        HEAD + 'register.declare_model("a", "MindIR", max_batch_delay_ms=-1)',
        "'max_batch_delay_ms'.*>= 0",
    ),
    "context option": (HEAD + "register.Context(threads=3)", "Context has no option 'threads'"),
    "thread_num": (HEAD + "register.Context(thread_num=0)", "'thread_num' should be >= 1, but got 0"),
    "cores": (
        HEAD + "register.Context(thread_affinity_core_list=1)",
        "should be tuple/list of int, but got int",
    ),
    "device twice": (
        HEAD + "c = register.Context()\nfor _ in 'ab': c.append_device_info(register.CPUDeviceInfo())",
        "device type cpu were appended already",
    ),
    "device": (
        HEAD + "register.Context().append_device_info('cpu')",
        "'device_info' should be CPUDeviceInfo",
    ),
    "precision": (HEAD + "register.GPUDeviceInfo(precision_mode='fp8')", "'origin', 'fp16', but got 'fp8'"),
    "device option": (HEAD + "register.CPUDeviceInfo(cores=1)", "CPUDeviceInfo has no option 'cores'"),
    "no output names": (method("return x1", outputs="[]"), "'output_names' should not be empty"),
    "output name twice": (method("return x1", outputs='["y", "y"]'), "holds 'y' more than once"),
    "*args": (method("return x1", arguments="x1, *x2"), r"'x2' of method 'predict'.*a \*args parameter"),
    "**kwargs": (method("return x1", arguments="x1, **x2"), r"'x2' of method 'predict'.*\*\*kwargs"),
    "keyword-only": (method("return x1", arguments="x1, *, x2"), "'x2' of method 'predict'.*keyword-only"),
    "method twice": (method("return x1") + method("return x1", head=""), "'predict' was registered before"),
    "no function": (HEAD + 'register.register_method("y")(3)', "should decorate a function, but got int"),
    "too few returned": (
        method("return x1", outputs='["y", "z"]'),
        "returns 1 values, but has 2 output_names",
    ),
    "too many returned": (method("return x1, x2"), "returns 2 values, but has 1 output_names"),
    "a number returned": (
        method("return 3"),
        "the returned value 0 should be an input of the method.*got int",
    ),
    "a number given": (
        method(STAGE.format("model, x1, 3, outputs_count=1")),
        "input 1 of stage 1 should be an",
    ),
    "a stage that is neither": (
        method(STAGE.format("3, x1, outputs_count=1")),
        "function or a Model.*got int",
    ),
    "a class": (method(STAGE.format("int, x1, outputs_count=1")), "function or a Model.*got type"),
    "a foreign model": (
        method(STAGE.format('register.Model("add.mindir"), x1, outputs_count=1')),
        "should be a Model of this servable",
    ),
    "an unknown name": (
        method(STAGE.format("'softmax', x1, outputs_count=1")),
        "no function named 'softmax'",
    ),
    "outputs_count": (
        method(STAGE.format("model, x1, x2, outputs_count=0")),
        "'outputs_count' should be >= 1",
    ),
    "batch_size": (
        method(STAGE.format("g, x1, outputs_count=1, batch_size=-1"), head=TWICE),
        "'batch_size' should be >= 0, but got -1",
    ),
    "tag": (method(STAGE.format("model, x1, x2, outputs_count=1, tag=3")), "'tag' should be str"),
    "parameters": (
        method(STAGE.format("f, x1, outputs_count=1"), head=FUNCTION),
        r"the function 'f' should take 1 inputs, but its parameters are \(a, b\)",
    ),
    "batch parameters": (
        method(STAGE.format("f, x1, outputs_count=1, batch_size=0"), head=FUNCTION),
        "should take the tuple of instances as its one argument",
    ),
    "function inputs": (
        method(
            "y = register.add_stage(g, x1, outputs_count=1, batch_size=0)\n"
            "return register.add_stage(g, x1, x2, outputs_count=1, batch_size=0)",
            head=TWICE,
        ),
        "'g' gets 2 inputs, but 1 in another stage",
    ),
    "function outputs": (
        method(
            "y = register.add_stage(f, x1, x2, outputs_count=1)\n"
            "y, z = register.add_stage(f, x1, x2, outputs_count=2)\nreturn z",
            head=FUNCTION,
        ),
        "'f' has 2 outputs, but 1 in another stage",
    ),
    "with and without batch_size": (
        method(
            "y = register.add_stage(g, x1, outputs_count=1, batch_size=0)\n"
            "return register.add_stage(g, x1, outputs_count=1)",
            head=TWICE,
        ),
        "'g' is used with 'batch_size' in one stage and without in another",
    ),
    "model inputs": (
        method(
            "y = register.add_stage(model, x1, x2, outputs_count=1)\n"
            "return register.add_stage(model, y, outputs_count=1)"
        ),
        "'add.mindir' has 1 inputs and 1 outputs, but before 2 inputs and 1 outputs",
    ),
    "unpacking": (
        method("y, z = register.add_stage(model, x1, x2, outputs_count=3)\nreturn y"),
        "too many values",
    ),
    "no model": (method("y = register.call_servable(x1, x2)\nreturn y", head=HEAD), "none is declared"),
    "two models": (
        method(
            "y = register.call_servable(x1, x2)\nreturn y", head=MODEL + 'register.declare_model("b", "om")\n'
        ),
        "uses call_servable, but 2 models are declared",
    ),
    "model twice": (
        method("y = register.call_servable(x1, x2)\ny = register.call_servable(y, x2)\nreturn y"),
        "call_servable should be called once only",
    ),
    "preprocess twice": (
        method(
            "x1 = register.call_preprocess(f, x1, x2)\nx1 = register.call_preprocess_pipeline(g, x1)\n"
            "y = register.call_servable(x1, x2)\nreturn y",
            head=TWICE,
        ),
        "call_preprocess should be called once only",
    ),
    "preprocess late": (
        method(
            "y = register.call_servable(x1, x2)\ny = register.call_preprocess(f, y, x2)\nreturn y",
            head=FUNCTION,
        ),
        "call_servable should come after call_preprocess",
    ),
    "model late": (
        method(
            "y = register.call_postprocess(f, x1, x2)\ny = register.call_servable(y, x2)\nreturn y",
            head=FUNCTION,
        ),
        "call_postprocess should come after call_servable",
    ),
    "never the model": (
        method("y = register.call_preprocess(f, x1, x2)\nreturn y", head=FUNCTION),
        "has no call_servable",
    ),
    "condition": (
        method(
            "if True:\n    x1 = register.call_preprocess(f, x1, x2)\n"
            "y = register.call_servable(x1, x2)\nreturn y",
            head=FUNCTION,
        ),
        r"no conditions, loops or other calls: use add_stage instead. Line 10: if True",
    ),
    "loop": (method("for _ in range(1):\n    y = register.call_servable(x1, x2)\nreturn y"), "use add_stage"),
    "mixed styles": (
        method(
            "x1 = register.add_stage(f, x1, x2, outputs_count=1)\n"
            "y = register.call_servable(x1, x2)\nreturn y",
            head=FUNCTION,
        ),
        "use add_stage instead",
    ),
    "nested": (
        method("y = register.call_servable(register.call_servable(x1, x2), x2)\nreturn y"),
        "use add_stage",
    ),
    "not assigned": (method("register.call_servable(x1, x2)\nreturn x1"), "use add_stage"),
    "to an attribute": (
        method("model.y = register.call_servable(x1, x2)\nreturn x1"),
        "should assign the results of call_servable to names",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_config_says_what_is_wrong(declare, case):
    text, message = WRONG[case]
    with pytest.raises(RuntimeError, match=message):
        declare(text)


def test_declaring_outside_of_an_import_is_an_error():
    from mycelia_serving.servable import register

    with pytest.raises(RuntimeError, match="takes effect while Serving imports servable_config.py"):
        register.declare_model("add.mindir", "MindIR")
    with pytest.raises(RuntimeError, match="takes effect while Serving imports"):
        register.add_stage(print, outputs_count=1)


def test_stages_belong_into_a_method(declare):
    with pytest.raises(RuntimeError, match="in a function that register_method decorates"):
        declare(MODEL + "register.add_stage(model, outputs_count=1)")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import time\nwhile True:\n    time.sleep(0.001)\n", "servable_config.py, line "),
        ("from .helper import x\n", "helper.py, line 2: threading.Event().wait()"),
        ("while True:\n    try:\n        x = 1\n    except Exception:\n        pass\n", "line "),
    ],
    ids=["loop", "hang in a helper", "loop that catches"],
)
def test_config_that_never_returns_is_an_error_that_says_where_it_is(tmp_path, text, line):
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "servable_config.py").write_text(text)
    (tmp_path / "demo" / "helper.py").write_text("import threading\nthreading.Event().wait()\n")
    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="not ended after 0.2 s") as caught:
        config.load_config(str(tmp_path), "demo", 0.2)
    assert line in str(caught.value) and "demo" in str(caught.value)
    for thread in set(threading.enumerate()) - before:
        if "helper" not in text:
            thread.join(30)
            assert not thread.is_alive(), "its Python code goes on"
    assert not [name for name in sys.modules if name.startswith("_mycelia_servable_demo")]
