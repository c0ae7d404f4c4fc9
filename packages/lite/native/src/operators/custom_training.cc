// Custom nodes of training: gradients, losses that make theirs along the way, normalization by the batch, steps of optimizers. Types
// are those ops of the framework; attributes have their names.
#include <algorithm>
#include <cmath>

#include "../kernels.h"
#include "custom.h"

namespace mycelia::lite {

using namespace schema;

#define LITE_CUSTOM(type) static void lower_custom_##type(Planner& p);
#include "training.def"
#undef LITE_CUSTOM

bool lower_training(Planner& p, const std::string& type) {
#define LITE_CUSTOM(name) \
  if (type == #name) return ask_for_part("training"), lower_custom_##name(p), true;
#include "training.def"
#undef LITE_CUSTOM
  return false;
}

namespace {

constexpr int64_t kMostWindow = int64_t{1} << 24;

std::string of_two(const Type& a, const Type& b) { return text_of(a) + " and " + text_of(b); }

bool same(const Type& a, const Type& b) { return a.dtype == b.dtype && a.shape == b.shape; }

// The types of the inputs, of which the first `count` must be there; fails unless all that are there are float32 except `but`.
std::vector<Type> inputs_of(Planner& p, size_t count, size_t most, int but = -1) {
  std::vector<Type> found;
  for (size_t i = 0; i < most; ++i) {
    const int value = i < count ? p.input(i) : p.optional_input(i);
    found.push_back(value < 0 ? Type() : p.type(value));
    if (value >= 0 && p.ok() && static_cast<int>(i) != but && found.back().dtype != MYC_F32)
      p.fail(kNotSupported, "an input " + text_of(found.back()) + ": training computes in float32");
  }
  return found;
}

std::vector<int> values_of(Planner& p, size_t count) {
  std::vector<int> values;
  for (size_t i = 0; i < count; ++i) values.push_back(p.optional_input(i));
  return values;
}

void set_outputs(Planner& p, const std::vector<int>& values) {
  for (size_t i = 0; i < values.size() && i < p.node().outputs.size(); ++i) p.set_output(i, values[i]);
}

// A gradient of an elementwise function: dy and what it follows from, of one type.
template <class Attributes>
void elementwise_gradient(Planner& p, const char* op, const Attributes& attributes) {
  const std::vector<Type> in = inputs_of(p, 2, 2);
  if (p.ok() && !same(in[0], in[1])) p.fail(kInferFailed, "gradients " + of_two(in[0], in[1]));
  if (p.ok()) p.set_output(0, p.emit(op, {p.input(0), p.input(1)}, attributes, in[0]));
}

struct None {
  int64_t unused = 0;
};

int64_t axis_attribute(Planner& p) {
  const Type type = p.type(p.input(0));
  const int64_t rank = std::max(type.rank(), 1), axis = custom_int(p, "axis", -rank, rank - 1);
  return axis < 0 ? axis + rank : axis;
}

int64_t reduction_of(Planner& p) { return custom_int(p, "reduction", 0, 2); }

// A number of one element as kernels of optimizers read it.
void check_numbers(Planner& p, size_t begin, size_t end) {
  for (size_t i = begin; i < end && p.ok(); ++i) {
    const Type type = p.type(p.input(i));
    if (p.ok() && (type.dtype != MYC_F32 || element_count(type.shape) != 1)) p.fail(kInferFailed, message({"input ", i, " must be one number of float32, but is ", text_of(type)}));
  }
}

// A step of an optimizer: the first `updated` inputs change; of what follows input `gradient` has their type, the others are numbers.
template <class Attributes>
void step(Planner& p, const char* op, size_t updated, size_t inputs, size_t gradient, const Attributes& attributes) {
  const Type type = p.type(p.input(0));
  if (p.ok() && type.dtype != MYC_F32) p.fail(kNotSupported, "parameters " + text_of(type) + ": training computes in float32");
  for (size_t i = 0; i < inputs && p.ok(); ++i) {
    const Type other = p.type(p.input(i));
    if (p.ok() && (i < updated || i == gradient) && !same(type, other)) p.fail(kInferFailed, "a parameter, its gradient and its states are " + of_two(type, other));
  }
  check_numbers(p, updated, gradient);
  check_numbers(p, gradient + 1, inputs);
  if (p.ok()) set_outputs(p, p.emit_all(op, values_of(p, inputs), attributes, std::vector<Type>(updated, type)));
}

// The windows of pools and convolutions over `spatial` axes, of which there are as many as `positions` says.
struct Given {
  std::vector<int64_t> kernel, stride, pad, dilation;
};
Given windows_of(Planner& p, int spatial, bool dilated) {
  const size_t n = static_cast<size_t>(spatial);
  Given w{custom_ints(p, "kernel", n, 1, kMostWindow), custom_ints(p, "stride", n, 1, kMostWindow), custom_ints(p, "pad", 2 * n, 0, kMostWindow),
          std::vector<int64_t>(n, 1)};
  if (dilated) w.dilation = custom_ints(p, "dilation", n, 1, kMostWindow);
  return w;
}
bool fit(const Given& w, const std::vector<int64_t>& size, const std::vector<int64_t>& positions, bool ceil) {
  const size_t n = w.kernel.size();
  for (size_t d = 0; d < n; ++d) {
    const int64_t free = size[d] + w.pad[d] + w.pad[d + n] - (w.kernel[d] - 1) * w.dilation[d] - 1;
    if (free < 0) return false;
    int64_t count = free / w.stride[d] + 1;
    if (ceil && free % w.stride[d] && count * w.stride[d] < size[d] + w.pad[d]) ++count;
    if (count != positions[d]) return false;
  }
  return true;
}
int spatial_axes(Planner& p, const Type& a, const Type& b) {
  const int spatial = a.rank() - 2;
  if (spatial >= 1 && spatial <= 3 && a.rank() == b.rank() && a.shape[0] == b.shape[0]) return spatial;
  p.fail(kInferFailed, "images and gradients " + of_two(a, b));
  return 1;
}
std::vector<int64_t> places(const Type& type) { return {type.shape.begin() + 2, type.shape.end()}; }

}  // namespace

static CUSTOM(relu_grad) { elementwise_gradient(p, "relu_grad", None()); }
static CUSTOM(sigmoid_grad) { elementwise_gradient(p, "sigmoid_grad", None()); }
static CUSTOM(tanh_grad) { elementwise_gradient(p, "tanh_grad", None()); }
static CUSTOM(silu_grad) { elementwise_gradient(p, "silu_grad", None()); }
static CUSTOM(hardswish_grad) { elementwise_gradient(p, "hardswish_grad", None()); }
static CUSTOM(leaky_relu_grad) { elementwise_gradient(p, "leaky_relu_grad", myc_leaky_relu_grad_attrs{custom_real(p, "alpha")}); }
static CUSTOM(elu_grad) { elementwise_gradient(p, "elu_grad", myc_elu_grad_attrs{custom_real(p, "alpha")}); }
static CUSTOM(hardtanh_grad) { elementwise_gradient(p, "hardtanh_grad", myc_hardtanh_grad_attrs{custom_real(p, "min_val"), custom_real(p, "max_val")}); }
static CUSTOM(gelu_grad) { elementwise_gradient(p, "gelu_grad", myc_gelu_grad_attrs{custom_int(p, "approximate", 0, 1)}); }
static CUSTOM(softmax_grad) { elementwise_gradient(p, "softmax_grad", myc_softmax_grad_attrs{axis_attribute(p)}); }
static CUSTOM(log_softmax_grad) { elementwise_gradient(p, "log_softmax_grad", myc_log_softmax_grad_attrs{axis_attribute(p)}); }

static CUSTOM(conv_weight_grad) {  // of the data and the gradient of the result
  const std::vector<Type> in = inputs_of(p, 2, 2);
  if (!p.ok()) return;
  const int spatial = spatial_axes(p, in[0], in[1]);
  const Given w = windows_of(p, spatial, true);
  const int64_t group = custom_int(p, "group", 1, kMostWindow);
  if (p.ok() && (in[0].shape[1] % group || in[1].shape[1] % group || !fit(w, places(in[0]), places(in[1]), false)))
    p.fail(kInferFailed, "a convolution of " + text_of(in[0]) + " does not give " + text_of(in[1]));
  if (!p.ok()) return;
  Type out{MYC_F32, {in[1].shape[1], in[0].shape[1] / group}};
  out.shape.insert(out.shape.end(), w.kernel.begin(), w.kernel.end());
  const myc_conv_weight_grad_attrs attributes{ints(p, w.kernel), ints(p, w.stride), ints(p, w.pad), ints(p, w.dilation), group};
  p.set_output(0, p.emit("conv_weight_grad", {p.input(0), p.input(1)}, attributes, out));
}

static CUSTOM(max_pool_grad) {  // the data and the gradient of the result
  const std::vector<Type> in = inputs_of(p, 2, 2);
  if (!p.ok()) return;
  const Given w = windows_of(p, spatial_axes(p, in[0], in[1]), true);
  const int64_t ceil = custom_int(p, "ceil", 0, 1);
  for (size_t d = 0; d < w.kernel.size() && p.ok(); ++d)
    if (w.pad[d] >= (w.kernel[d] - 1) * w.dilation[d] + 1) p.fail(kOperatorAttribute, "windows that lie in the padding alone");
  if (p.ok() && (in[0].shape[1] != in[1].shape[1] || !fit(w, places(in[0]), places(in[1]), ceil)))
    p.fail(kInferFailed, "a pool of " + text_of(in[0]) + " does not give " + text_of(in[1]));
  if (!p.ok()) return;
  const myc_max_pool_grad_attrs attributes{ints(p, w.kernel), ints(p, w.stride), ints(p, w.pad), ints(p, w.dilation), ceil, 0};
  p.set_output(0, p.emit("max_pool_grad", {p.input(0), p.input(1)}, attributes, in[0]));
}

static CUSTOM(avg_pool_grad) {  // the gradient of the result; `size`: of the data
  const std::vector<Type> in = inputs_of(p, 1, 1);
  if (!p.ok()) return;
  const int spatial = spatial_axes(p, in[0], in[0]);
  const Given w = windows_of(p, spatial, false);
  const std::vector<int64_t> size = custom_ints(p, "size", static_cast<size_t>(spatial), 1, kMostSize);
  const int64_t ceil = custom_int(p, "ceil", 0, 1), count = custom_int(p, "count_include_pad", 0, 1), divisor = custom_int(p, "divisor", 0, kMostSize);
  for (size_t d = 0; d < w.kernel.size() && p.ok(); ++d)
    if (w.pad[d] >= w.kernel[d]) p.fail(kOperatorAttribute, "windows that lie in the padding alone");
  if (p.ok() && !fit(w, size, places(in[0]), ceil)) p.fail(kInferFailed, "a pool does not give " + text_of(in[0]));
  if (!p.ok()) return;
  Type out{MYC_F32, {in[0].shape[0], in[0].shape[1]}};
  out.shape.insert(out.shape.end(), size.begin(), size.end());
  p.set_output(0, p.emit("avg_pool_grad", {p.input(0)}, myc_avg_pool_grad_attrs{ints(p, size), ints(p, w.kernel), ints(p, w.stride), ints(p, w.pad), ceil, count, divisor, 0}, out));
}

// ---- losses

static CUSTOM(sparse_softmax_cross_entropy_with_logits) {
  const std::vector<Type> in = inputs_of(p, 2, 2, 1);
  const int64_t reduction = reduction_of(p);
  const myc_sparse_softmax_cross_entropy_with_logits_attrs attributes{reduction, custom_int(p, "ignore_index", INT64_MIN, INT64_MAX)};
  if (p.ok() && (in[0].rank() != 2 || in[1].rank() != 1 || in[0].shape[0] != in[1].shape[0] || in[0].shape[1] < 1 || (in[1].dtype != MYC_I32 && in[1].dtype != MYC_I64)))
    p.fail(kInferFailed, "logits and labels " + of_two(in[0], in[1]));
  if (!p.ok()) return;
  const Type loss{MYC_F32, reduction == 2 ? in[1].shape : std::vector<int64_t>()};
  set_outputs(p, p.emit_all("sparse_softmax_cross_entropy_with_logits", values_of(p, 2), attributes, {loss, in[0]}));
}

static CUSTOM(softmax_cross_entropy_with_logits) {
  const std::vector<Type> in = inputs_of(p, 2, 2);
  if (p.ok() && (in[0].rank() != 2 || !same(in[0], in[1]) || in[0].shape[1] < 1)) p.fail(kInferFailed, "logits and labels " + of_two(in[0], in[1]));
  if (p.ok()) set_outputs(p, p.emit_all("softmax_cross_entropy_with_logits", values_of(p, 2), None(), {{MYC_F32, {in[0].shape[0]}}, in[0]}));
}

static CUSTOM(sigmoid_cross_entropy_with_logits) { elementwise_gradient(p, "sigmoid_cross_entropy_with_logits", None()); }

static CUSTOM(squared_error) {
  const std::vector<Type> in = inputs_of(p, 2, 2);
  const int64_t reduction = reduction_of(p);
  if (p.ok() && !same(in[0], in[1])) p.fail(kInferFailed, "values " + of_two(in[0], in[1]));
  if (p.ok()) p.set_output(0, p.emit("squared_error", {p.input(0), p.input(1)}, myc_squared_error_attrs{reduction}, {MYC_F32, reduction == 2 ? in[0].shape : std::vector<int64_t>()}));
}

static CUSTOM(squared_error_grad) {  // dy, x, y
  const std::vector<Type> in = inputs_of(p, 3, 3);
  const int64_t reduction = reduction_of(p);
  if (p.ok() && (!same(in[1], in[2]) || in[0].shape != (reduction == 2 ? in[1].shape : std::vector<int64_t>()))) p.fail(kInferFailed, "values " + of_two(in[1], in[2]) + " and a gradient " + text_of(in[0]));
  if (p.ok()) p.set_output(0, p.emit("squared_error_grad", {p.input(0), p.input(1), p.input(2)}, myc_squared_error_grad_attrs{reduction}, in[1]));
}

// ---- normalization

static CUSTOM(batch_norm_train) {  // running mean and variance, x, scale, bias; results: these two, y, mean and inverse deviation of the batch
  const std::vector<Type> in = inputs_of(p, 5, 5);
  const myc_batch_norm_train_attrs attributes{custom_real(p, "epsilon"), custom_real(p, "momentum"), custom_int(p, "data_format", 0, 1)};
  if (!p.ok()) return;
  const Type& x = in[2];
  if (x.rank() < 2) return static_cast<void>(p.fail(kInferFailed, "data " + text_of(x)));
  const Type vector{MYC_F32, {attributes.data_format ? x.shape.back() : x.shape[1]}};
  for (const size_t i : {0, 1, 3, 4})
    if (!same(in[i], vector)) p.fail(kInferFailed, "data " + text_of(x) + " and a vector " + text_of(in[i]));
  if (p.ok()) set_outputs(p, p.emit_all("batch_norm_train", values_of(p, 5), attributes, {vector, vector, x, vector, vector}));
}

static CUSTOM(batch_norm_act_train) {  // the same, with an activation behind y
  const std::vector<Type> in = inputs_of(p, 5, 5);
  const myc_batch_norm_act_train_attrs attributes{custom_real(p, "epsilon"), custom_real(p, "momentum"), custom_int(p, "data_format", 0, 1),
                                                  1 + custom_int(p, "activation", 0, 1)};
  if (!p.ok()) return;
  const Type& x = in[2];
  if (x.rank() < 2) return static_cast<void>(p.fail(kInferFailed, "data " + text_of(x)));
  const Type vector{MYC_F32, {attributes.data_format ? x.shape.back() : x.shape[1]}};
  for (const size_t i : {0, 1, 3, 4})
    if (!same(in[i], vector)) p.fail(kInferFailed, "data " + text_of(x) + " and a vector " + text_of(in[i]));
  std::vector<int> values = values_of(p, 5);
  values.push_back(-1);  // a residual
  if (p.ok()) set_outputs(p, p.emit_all("batch_norm_act_train", values, attributes, {vector, vector, x, vector, vector}));
}

static CUSTOM(batch_norm_act_grad) {  // dy, x, scale, bias, mean and inverse deviation of the batch
  const std::vector<Type> in = inputs_of(p, 6, 6);
  const myc_batch_norm_act_grad_attrs attributes{custom_real(p, "epsilon"), custom_int(p, "data_format", 0, 1), custom_int(p, "activation", 0, 1)};
  if (!p.ok()) return;
  if (in[1].rank() < 2 || !same(in[0], in[1])) return static_cast<void>(p.fail(kInferFailed, "data and gradient " + of_two(in[1], in[0])));
  const Type vector{MYC_F32, {attributes.data_format ? in[1].shape.back() : in[1].shape[1]}};
  for (const size_t i : {2, 3, 4, 5})
    if (!same(in[i], vector)) p.fail(kInferFailed, "data " + text_of(in[1]) + " and a vector " + text_of(in[i]));
  if (p.ok()) set_outputs(p, p.emit_all("batch_norm_act_grad", values_of(p, 6), attributes, {in[1], vector, vector}));
}

static CUSTOM(batch_norm_infer) {  // x, scale, bias, mean, variance
  const std::vector<Type> in = inputs_of(p, 5, 5);
  const myc_batch_norm_infer_attrs attributes{custom_real(p, "epsilon"), custom_int(p, "data_format", 0, 1)};
  if (!p.ok()) return;
  if (in[0].rank() < 2) return static_cast<void>(p.fail(kInferFailed, "data " + text_of(in[0])));
  const Type vector{MYC_F32, {attributes.data_format ? in[0].shape.back() : in[0].shape[1]}};
  for (const size_t i : {1, 2, 3, 4})
    if (!same(in[i], vector)) p.fail(kInferFailed, "data " + text_of(in[0]) + " and a vector " + text_of(in[i]));
  if (p.ok()) p.set_output(0, p.emit("batch_norm_infer", values_of(p, 5), attributes, in[0]));
}

static CUSTOM(batch_norm_grad) {  // dy, x, scale, mean and inverse deviation of the batch
  const std::vector<Type> in = inputs_of(p, 5, 5);
  const myc_batch_norm_grad_attrs attributes{custom_real(p, "epsilon"), custom_int(p, "data_format", 0, 1)};
  if (!p.ok()) return;
  if (in[1].rank() < 2 || !same(in[0], in[1])) return static_cast<void>(p.fail(kInferFailed, "data and gradient " + of_two(in[1], in[0])));
  const Type vector{MYC_F32, {attributes.data_format ? in[1].shape.back() : in[1].shape[1]}};
  for (const size_t i : {2, 3, 4})
    if (!same(in[i], vector)) p.fail(kInferFailed, "data " + text_of(in[1]) + " and a vector " + text_of(in[i]));
  if (p.ok()) set_outputs(p, p.emit_all("batch_norm_grad", values_of(p, 5), attributes, {in[1], vector, vector}));
}

// ---- steps of optimizers

static CUSTOM(apply_gradient_descent) { step(p, "apply_gradient_descent", 1, 3, 2, None()); }
static CUSTOM(sgd) { step(p, "sgd", 3, 6, 3, myc_sgd_attrs{custom_real(p, "dampening"), custom_real(p, "weight_decay"), custom_int(p, "nesterov", 0, 1)}); }
static CUSTOM(apply_momentum) {
  step(p, "apply_momentum", 2, 5, 3, myc_apply_momentum_attrs{custom_int(p, "use_nesterov", 0, 1), 0, custom_real(p, "gradient_scale"), custom_real(p, "weight_decay")});
}
static CUSTOM(adam) {
  step(p, "adam", 3, 10, 9, myc_adam_attrs{0, custom_int(p, "use_nesterov", 0, 1), custom_real(p, "gradient_scale"), custom_real(p, "weight_decay")});
}
static CUSTOM(adam_weight_decay) { step(p, "adam_weight_decay", 3, 9, 8, myc_adam_weight_decay_attrs{0}); }
static CUSTOM(adamw) { step(p, "adamw", 3, 10, 9, None()); }

}  // namespace mycelia::lite
