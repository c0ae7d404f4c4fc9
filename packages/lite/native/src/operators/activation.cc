// Activations, alone and behind other operators.
#include "common.h"
#include "kernels.h"

namespace mycelia::lite {

using namespace schema;

int activated(Planner& p, int value, int8_t activation) {
  const Type type = p.type(value);
  switch (activation) {
    case kActivationType_NO_ACTIVATION: return value;
    case kActivationType_RELU: return p.emit("relu", {value}, type);
    case kActivationType_SIGMOID: return p.emit("sigmoid", {value}, type);
    case kActivationType_RELU6: return p.emit("relu6", {value}, type);
    case kActivationType_TANH: return p.emit("tanh", {value}, type);
    case kActivationType_HSWISH: return p.emit("hardswish", {value}, type);
    case kActivationType_HSIGMOID: return p.emit("hardsigmoid", {value}, type);
    case kActivationType_SWISH: return p.emit("silu", {value}, type);
    case kActivationType_ABS: return p.emit("abs", {value}, type);
    case kActivationType_SIGN: return p.emit("sign", {value}, type);
    case kActivationType_SOFTSIGN: {
      const int below = p.emit("add", {p.emit("abs", {value}, type), p.scalar(type.dtype, 1)}, type);
      return p.emit("div", {value, below}, type);
    }
    case kActivationType_SOFTPLUS: {  // max(x, 0) + log(1 + exp(-|x|)) does not overflow
      const int small = p.emit("exp", {p.emit("neg", {p.emit("abs", {value}, type)}, type)}, type);
      return p.emit("add", {p.emit("relu", {value}, type), p.emit("log1p", {small}, type)}, type);
    }
    case kActivationType_SELU: {
      constexpr double kAlpha = 1.6732632423543772, kScale = 1.0507009873554805;
      const int y = p.emit("elu", {value}, myc_elu_attrs{kAlpha}, type);
      return p.emit("mul", {y, p.scalar(type.dtype, kScale)}, type);
    }
    default: return p.fail(kNotSupported, "activation_type " + std::to_string(activation) + " has no kernel");
  }
}

int64_t fused_activation(int8_t activation) {
  if (activation == kActivationType_HSWISH || activation == kActivationType_SWISH || activation == kActivationType_SIGMOID) ask_for_part("activations");
  switch (activation) {
    case kActivationType_NO_ACTIVATION: return 0;
    case kActivationType_RELU: return 1;
    case kActivationType_RELU6: return 2;
    case kActivationType_HSWISH: return 3;
    case kActivationType_SWISH: return 4;
    case kActivationType_SIGMOID: return 5;
    default: return -1;
  }
}

OPERATOR(Activation) {
  const Table& a = p.node().attributes;
  const int last = p.input(0), first = p.first_of(last), x = first < 0 ? last : first;
  const Type type = p.type(x);
  const int8_t kind = a.get<int8_t>(kActivation_activation_type);
  int y;
  if (kind == kActivationType_ELU || kind == kActivationType_LEAKY_RELU) {
    const double alpha = a.get<float>(kActivation_alpha);
    y = kind == kActivationType_ELU ? p.emit("elu", {x}, myc_elu_attrs{alpha}, type) : p.emit("leaky_relu", {x}, myc_leaky_relu_attrs{alpha}, type);
  } else if (kind == kActivationType_HARD_TANH) {
    y = p.emit("clip", {x}, myc_clip_attrs{1, a.get<float>(kActivation_min_val), 1, a.get<float>(kActivation_max_val)}, type);
  } else if (kind == kActivationType_THRESHOLDRELU) {
    const int above = p.emit("greater", {x, p.scalar(type.dtype, a.get<float>(kActivation_alpha))}, Type{MYC_BOOL, type.shape});
    y = p.emit("where", {above, x, p.scalar(type.dtype, 0)}, type);
  } else if (kind == kActivationType_GELU) {
    y = p.emit("gelu", {x}, myc_gelu_attrs{a.get<uint8_t>(kActivation_approximate)}, type);
  } else {
    y = activated(p, x, kind);
  }
  p.set_output(0, first < 0 ? y : p.channels_last(y));
}

OPERATOR(Elu) {
  const int x = p.input(0);
  p.set_output(0, p.emit("elu", {x}, myc_elu_attrs{p.node().attributes.get<float>(kElu_alpha)}, p.type(x)));
}

OPERATOR(LeakyRelu) {
  const int x = p.input(0);
  p.set_output(0, p.emit("leaky_relu", {x}, myc_leaky_relu_attrs{p.node().attributes.get<float>(kLeakyRelu_negative_slope)}, p.type(x)));
}

OPERATOR(GLU) {  // the first half along an axis times the sigmoid of the second one
  const int x = p.input(0);
  const Type type = p.type(x);
  const int axis = axis_of(p, p.node().attributes.get<int64_t>(kGLU_axis, -1), type.rank());
  if (p.ok() && type.shape[axis] % 2) p.fail(kInferFailed, text_of(type) + " has no halves along axis " + std::to_string(axis));
  if (!p.ok()) return;
  const int64_t half = type.shape[axis] / 2;
  Type out = type;
  out.shape[axis] = half;
  const int gate = p.emit("sigmoid", {sliced_along(p, x, axis, half, half)}, out);
  p.set_output(0, p.emit("mul", {sliced_along(p, x, axis, 0, half), gate}, out));
}

// What only training needs: the input itself.
OPERATOR(Dropout) { p.set_output(0, p.input(0)); }
OPERATOR(Depend) { p.set_output(0, p.input(0)); }

}  // namespace mycelia::lite
