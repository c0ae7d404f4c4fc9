// Activations, alone and behind other operators.
#include "common.h"

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
    default: return p.fail(kNotSupported, "activation_type " + std::to_string(activation) + " has no kernel");
  }
}

int64_t fused_activation(int8_t activation) {
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
  } else if (kind == kActivationType_GELU) {
    y = p.emit("gelu", {x}, myc_gelu_attrs{a.get<uint8_t>(kActivation_approximate)}, type);
  } else {
    y = activated(p, x, kind);
  }
  p.set_output(0, first < 0 ? y : p.channels_last(y));
}

}  // namespace mycelia::lite
