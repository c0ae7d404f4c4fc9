"""What `servable_config.py` files use: declaring models and methods, in both styles of MindSpore Serving.

model = register.declare_model(model_file="tensor_add.mindir", model_format="MindIR")

@register.register_method(output_names=["y"])
def add_common(x1, x2):
    return register.add_stage(model, x1, x2, outputs_count=1)
"""

from mycelia_serving.servable import method, model
from mycelia_serving.servable.contexts import (
    AclOptions,
    AscendDeviceInfo,
    Context,
    CPUDeviceInfo,
    GPUDeviceInfo,
    GpuOptions,
)
from mycelia_serving.servable.method import (
    add_stage,
    call_postprocess,
    call_postprocess_pipeline,
    call_preprocess,
    call_preprocess_pipeline,
    call_servable,
    one_at_a_time,
    register_method,
)
from mycelia_serving.servable.model import Model, append_model, declare_model, declare_servable

__all__ = [
    "AclOptions",
    "AscendDeviceInfo",
    "CPUDeviceInfo",
    "Context",
    "GPUDeviceInfo",
    "GpuOptions",
    "Model",
    "add_stage",
    "append_model",
    "call_postprocess",
    "call_postprocess_pipeline",
    "call_preprocess",
    "call_preprocess_pipeline",
    "call_servable",
    "declare_model",
    "declare_servable",
    "method",
    "model",
    "one_at_a_time",
    "register_method",
]
