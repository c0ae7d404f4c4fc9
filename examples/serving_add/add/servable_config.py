"""The addition of two 2x2 matrices, declared as in MindSpore Serving 1.1."""

import numpy as np

from mycelia_serving.worker import register


def add_trans_datatype(x1, x2):
    """Turns numbers of any kind into those that the model takes."""
    return x1.astype(np.float32), x2.astype(np.float32)


register.declare_servable(servable_file="tensor_add.mindir", model_format="MindIR", with_batch_dim=False)


@register.register_method(output_names=["y"])
def add_common(x1, x2):
    """The model alone: float32 in, float32 out."""
    y = register.call_servable(x1, x2)
    return y


@register.register_method(output_names=["y"])
def add_cast(x1, x2):
    """A function, then the model."""
    x1, x2 = register.call_preprocess(add_trans_datatype, x1, x2)
    y = register.call_servable(x1, x2)
    return y
