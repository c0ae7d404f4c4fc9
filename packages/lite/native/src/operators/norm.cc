// Normalizations as a trained network runs them.
#include <algorithm>

#include "common.h"

namespace mycelia::lite {

using namespace schema;

OPERATOR(LayerNormFusion) {
  const Table& a = p.node().attributes;
  const int x = p.input(0), gamma = p.optional_input(1), beta = p.optional_input(2);
  const Type type = p.type(x);
  const int begin = axis_of(p, a.get<int64_t>(kLayerNormFusion_begin_norm_axis), type.rank());
  const int parameters = axis_of(p, a.get<int64_t>(kLayerNormFusion_begin_params_axis), type.rank());
  if (!p.ok()) return;
  if (begin != parameters) p.fail(kNotSupported, "begin_norm_axis and begin_params_axis differ");
  const int64_t count = element_count({type.shape.begin() + begin, type.shape.end()});
  for (int value : {gamma, beta})
    if (value >= 0 && element_count(p.type(value).shape) != count)
      p.fail(kInferFailed, text_of(p.type(value)) + " does not fit the last axes of " + text_of(type));
  Type rows{MYC_F32, {type.shape.begin(), type.shape.begin() + begin}};
  rows.shape.resize(type.shape.size(), 1);
  const double epsilon = a.get<float>(kLayerNormFusion_epsilon, 1e-5f);
  const myc_layer_norm_attrs attributes{begin, begin, epsilon};
  p.set_output(0, p.emit_all("layer_norm", {x, gamma, beta}, attributes, {type, rows, rows})[0]);
}

namespace {

// Channels are the last axis; each of the others has one number a channel.
void batch_norm(Planner& p, int x, int scale, int bias, int mean, int variance, double epsilon) {
  const Type type = p.type(x);
  if (type.rank() < 2) p.fail(kInferFailed, text_of(type) + " has no axis of channels");
  for (int value : {scale, bias, mean, variance})
    if (p.ok() && p.type(value).shape != std::vector<int64_t>{type.shape.back()})
      p.fail(kInferFailed, text_of(p.type(value)) + " does not fit the channels of " + text_of(type));
  p.set_output(0, p.emit("batch_norm_infer", {x, scale, bias, mean, variance}, myc_batch_norm_infer_attrs{epsilon, 1}, type));
}

}  // namespace

OPERATOR(FusedBatchNorm) {
  const double epsilon = p.node().attributes.get<float>(kFusedBatchNorm_epsilon, 1e-4f);
  const int x = p.input(0), scale = p.input(1), bias = p.input(2), mean = p.input(3), variance = p.input(4);
  batch_norm(p, x, scale, bias, mean, variance, epsilon);
}

OPERATOR(BatchNorm) {
  const int x = p.input(0), mean = p.input(1), variance = p.input(2);
  const Type channels{p.type(x).dtype, p.type(mean).shape};
  const auto all = [&](double value) {
    const int one = p.scalar(channels.dtype, value);
    const myc_broadcast_to_attrs attributes{ints(p, channels.shape)};
    return p.emit("broadcast_to", {one}, attributes, channels);
  };
  const int scale = all(1), bias = all(0);
  batch_norm(p, x, scale, bias, mean, variance, p.node().attributes.get<float>(kBatchNorm_epsilon));
}

namespace {

// x [N, groups, elements] normalized along the last axis.
int normalized(Planner& p, int x, double epsilon) {
  const Type type = p.type(x), rows{MYC_F32, {type.shape[0], type.shape[1], 1}};
  return p.emit_all("layer_norm", {x, -1, -1}, myc_layer_norm_attrs{2, 2, epsilon}, {type, rows, rows})[0];
}

// y [N, C, elements] times the scale of its channel, plus the bias.
int of_channels(Planner& p, int y, int scale, int bias) {
  const Type type = p.type(y);
  for (const int value : {scale, bias})
    if (p.ok() && p.type(value).shape != std::vector<int64_t>{type.shape[1]})
      p.fail(kInferFailed, text_of(p.type(value)) + " does not fit " + std::to_string(type.shape[1]) + " channels");
  if (!p.ok()) return 0;
  const int scaled = p.emit("mul", {y, p.view(scale, {type.shape[1], 1})}, type);
  return p.emit("add", {scaled, p.view(bias, {type.shape[1], 1})}, type);
}

}  // namespace

OPERATOR(InstanceNorm) {  // x [N, ..., C]: each channel of each of N by its own mean and deviation
  const int x = p.input(0), scale = p.input(1), bias = p.input(2);
  const Type type = p.type(x);
  if (p.ok() && (type.rank() < 3 || type.dtype != MYC_F32)) p.fail(kInferFailed, text_of(type) + " has no channels of several elements");
  if (!p.ok()) return;
  const int64_t n = type.shape[0], c = type.shape.back(), each = element_count({type.shape.begin() + 1, type.shape.end() - 1});
  const int first = p.turned(p.view(x, {n, each, c}), {0, 2, 1});
  if (!p.ok()) return;
  const int y = of_channels(p, normalized(p, first, p.node().attributes.get<float>(kInstanceNorm_epsilon)), scale, bias);
  if (p.ok()) p.set_output(0, p.view(p.turned(y, {0, 2, 1}), type.shape));
}

OPERATOR(GroupNormFusion) {  // x [N, C, ...]: each group of channels of each of N
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const Type type = p.type(x);
  const int64_t groups = a.get<int64_t>(kGroupNormFusion_num_groups);
  if (p.ok() && (type.rank() < 2 || type.dtype != MYC_F32)) p.fail(kInferFailed, text_of(type) + " has no axis of channels");
  if (p.ok() && (groups < 1 || type.shape[1] % groups)) p.fail(kOperatorAttribute, std::to_string(groups) + " groups of the channels of " + text_of(type));
  if (!p.ok()) return;
  const int64_t n = type.shape[0], c = type.shape[1], each = element_count({type.shape.begin() + 2, type.shape.end()});
  int y = normalized(p, p.view(x, {n, groups, c / groups * each}), a.get<float>(kGroupNormFusion_epsilon, 1e-5f));
  if (a.get<uint8_t>(kGroupNormFusion_affine, 1) && p.ok()) y = of_channels(p, p.view(y, {n, c, each}), p.input(1), p.input(2));
  if (p.ok()) p.set_output(0, p.view(y, type.shape));
}

OPERATOR(LpNormalization) {  // x by the sum of its magnitudes along an axis (p 1), or the root of that of its squares (p 2)
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const Type type = p.type(x);
  const int axis = axis_of(p, a.get<int64_t>(kLpNormalization_axis), type.rank());
  const int64_t power = a.get<int64_t>(kLpNormalization_p);
  if (power != 1 && power != 2) p.fail(kNotSupported, "p " + std::to_string(power));
  if (!p.ok()) return;
  Type rows = type;
  rows.shape[axis] = 1;
  int norm = p.emit("sum", {p.emit(power == 1 ? "abs" : "square", {x}, type)}, myc_sum_attrs{1, ints({axis}), 1, 0, 0}, rows);
  if (power == 2) norm = p.emit("sqrt", {norm}, rows);
  p.set_output(0, p.emit("div", {x, norm}, type));
}

OPERATOR(ScaleFusion) {  // scale and bias lie along the axes from `axis` on
  const Table& a = p.node().attributes;
  const int x = p.input(0), bias = p.optional_input(2);
  int scale = p.input(1);
  const Type type = p.type(x), s = p.type(scale);
  const int axis = axis_of(p, a.get<int64_t>(kScaleFusion_axis), type.rank());
  if (!p.ok()) return;
  if (axis + s.rank() > type.rank() || !std::equal(s.shape.begin(), s.shape.end(), type.shape.begin() + axis))
    p.fail(kInferFailed, text_of(s) + " does not fit " + text_of(type) + " from axis " + std::to_string(axis) + " on");
  if (bias >= 0 && p.type(bias).shape != s.shape) p.fail(kInferFailed, "the bias " + text_of(p.type(bias)) + " does not fit the scale " + text_of(s));
  if (!p.ok()) return;
  std::vector<int64_t> shape = s.shape;
  shape.resize(type.rank() - axis, 1);
  scale = p.view(scale, shape);
  int y = p.emit("mul", {x, scale}, type);
  if (bias >= 0) y = p.emit("add", {y, p.view(bias, shape)}, type);
  p.set_output(0, activated(p, y, a.get<int8_t>(kScaleFusion_activation_type)));
}

OPERATOR(L2NormalizeFusion) {
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const Type type = p.type(x);
  const std::vector<bool> gone = named_axes(p, numbers(a.span<int64_t>(kL2NormalizeFusion_axis)), type.rank());
  Type rows = type;
  myc_sum_attrs sum{1, {}, 1, 0, 0};
  for (int d = 0; d < type.rank(); ++d)
    if (gone[d]) sum.dim.v[sum.dim.n++] = d, rows.shape[d] = 1;
  if (p.ok() && !sum.dim.n) p.fail(kOperatorAttribute, "it names no axis");
  const double epsilon = a.get<float>(kL2NormalizeFusion_epsilon);
  const int square = p.emit("square", {x}, type);
  const int total = p.emit("sum", {square}, sum, rows);
  const int bounded = p.emit("maximum", {total, p.scalar(type.dtype, epsilon)}, rows);
  const int y = p.emit("div", {x, p.emit("sqrt", {bounded}, rows)}, type);
  p.set_output(0, activated(p, y, a.get<int8_t>(kL2NormalizeFusion_activation_type)));
}

OPERATOR(LRN) {  // across the channels, which are the last axis
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const Type type = p.type(x);
  const int64_t radius = a.get<int64_t>(kLRN_depth_radius);
  if (type.rank() != 4) p.fail(kInferFailed, "images must be [N, H, W, C], but are " + text_of(type));
  if (radius < 0 || radius > 64) p.fail(kNotSupported, "depth_radius " + std::to_string(radius) + " is out of range");
  if (!p.ok()) return;
  const int64_t channels = type.shape[3];
  const int square = p.emit("square", {x}, type);
  myc_pad_constant_attrs pads{ints({0, 0, 0, 0, 0, 0, radius, radius}), 0};
  Type wide = type;
  wide.shape[3] += 2 * radius;
  const int bordered = p.emit("pad_constant", {square}, pads, wide);
  int total = sliced_along(p, bordered, 3, 0, channels);
  for (int64_t k = 1; k <= 2 * radius && p.ok(); ++k) total = p.emit("add", {total, sliced_along(p, bordered, 3, k, channels)}, type);
  total = p.emit("mul", {total, p.scalar(type.dtype, a.get<float>(kLRN_alpha))}, type);
  total = p.emit("add", {total, p.scalar(type.dtype, a.get<float>(kLRN_bias))}, type);
  total = p.emit("pow", {total, p.scalar(type.dtype, -a.get<float>(kLRN_beta))}, type);
  p.set_output(0, p.emit("mul", {x, total}, type));
}

}  // namespace mycelia::lite
