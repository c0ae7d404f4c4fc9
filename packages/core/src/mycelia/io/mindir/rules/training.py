"""Rules of training steps that are operators of their own; others are compositions (`io/compositions`)."""

from __future__ import annotations

from mycelia.engine.ir import Node
from mycelia.engine.ops.elementwise.rectifiers import ABOVE_SIX
from mycelia.io.mindir.rules.shape import part_of
from mycelia.io.mindir.rules.table import Unsupported, require_static, result_type, rule, step
from mycelia.io.mindir.rules.windows import max_windows, pool, windows_of_conv


@rule("stop_gradient")
def _stop_gradient(w, node, inputs):
    return inputs[0]


@rule("max_pool_grad")
def _max_pool_grad(w, node, inputs):
    x, dy, attrs = node.inputs[0].type, node.inputs[1].type, node.attrs
    if x.rank != 4 or attrs["data_format"] != "NCHW" or any(d != 1 for d in attrs["dilation"]):
        raise Unsupported("max_pool_grad of other than images with channels first, or with dilation")
    require_static(node, x)
    forward = Node(node.op, node.inputs[:1], attrs, [dy])
    name, kernel, stride, begins, ends = max_windows(w, forward, inputs[0])
    pooled = pool(w, "MaxPool", name, kernel, stride, dy)
    sizes = dict(kernel_size=(1, 1, *kernel), strides=(1, 1, *stride))
    grad = w.primitive(
        "MaxPoolGrad", name, pooled, inputs[1], pad_mode="VALID", format="NCHW", data_format="NCHW", **sizes
    )
    return part_of(w, grad, (0, 0, *begins), x.shape, (1,) * 4, x) if any((*begins, *ends)) else grad


@rule("relu_grad")
def _relu_grad(w, node, inputs):
    return w.op("ReluGrad", *inputs, out=result_type(node))


@rule("hardtanh_grad")
def _hardtanh_grad(w, node, inputs):
    if (node.attrs["min_val"], node.attrs["max_val"]) != (0, ABOVE_SIX):
        return w.composed(node, inputs)
    return w.op("ReLU6Grad", *inputs, out=result_type(node))


@rule("sigmoid_grad", "tanh_grad")
def _of_result(w, node, inputs):
    operator = "SigmoidGrad" if node.op.name == "sigmoid_grad" else "TanhGrad"
    return w.op(operator, inputs[1], inputs[0], out=result_type(node))


@rule("silu_grad")
def _silu_grad(w, node, inputs):
    return w.op("SiLUGrad", *inputs, out=result_type(node))


@rule("conv_weight_grad")
def _conv_weight_grad(w, node, inputs):
    x, out = node.inputs[0].type, result_type(node)
    if x.rank != 4:
        return w.composed(node, inputs)
    common = windows_of_conv(node, node.attrs["kernel"], out.shape[0])
    return w.primitive(
        "Conv2DBackpropFilter", inputs[1], inputs[0], out.shape, out=out, format="NCHW", **common
    )


@rule("batch_norm_grad")
def _batch_norm_grad(w, node, inputs):
    if node.attrs["data_format"] != "NCHW" or node.inputs[1].type.rank not in (2, 4):
        return w.composed(node, inputs)
    name = w.op("BatchNormGrad", *inputs, inputs[4], True, node.attrs["epsilon"], 0)
    return [w.item(name, i, value.type) for i, value in enumerate(node.outputs)]


# ---- operators that change Parameters -----------------------------------------------------------


@step("batch_norm_train")
def _batch_norm_train(w, node, inputs, state):
    if node.attrs["data_format"] != "NCHW" or node.inputs[2].type.rank not in (2, 4):
        return None
    mean, variance, x, scale, bias = inputs
    how = True, node.attrs["epsilon"], node.attrs["momentum"], 0
    name = w.change("BatchNorm", (x, scale, bias, mean, variance, *how), {}, state, function=True)
    return name, (0, 3, 4)


@step("sgd")
def _sgd(w, node, inputs, state):
    variable, accum, stat, gradient, rate, momentum = inputs
    order = variable, gradient, rate, accum, momentum, stat
    return w.change("SGD", order, node.attrs, state, out=node.outputs[0].type)


@step("apply_momentum")
def _apply_momentum(w, node, inputs, state):
    attrs = dict(node.attrs)
    if attrs.pop("weight_decay") or attrs["use_nesterov"]:  # which MindSpore's operator heeds not on the CPU
        return None
    return w.change("ApplyMomentum", inputs, attrs, state, out=node.outputs[0].type)


@step("adam")
def _adam(w, node, inputs, state):
    attrs = dict(node.attrs)
    if attrs.pop("weight_decay") or attrs.pop("gradient_scale") != 1:
        return None
    return w.change("Adam", inputs, attrs, state, out=node.outputs[0].type)
