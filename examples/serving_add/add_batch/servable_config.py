"""The addition of rows, two at a time: the first dimension of the model's inputs is the batch.

Clients do not see it: an instance is one row of three numbers, and a request has any number of instances.
"""

from mycelia_serving.server import register

model = register.declare_model(model_file="tensor_add.mindir", model_format="MindIR", with_batch_dim=True)


@register.register_method(output_names=["y"])
def add_rows(x1, x2):
    return register.add_stage(model, x1, x2, outputs_count=1)
