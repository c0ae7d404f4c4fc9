// Nodes that compute with integers of 8 bits: quantType QUANT_ALL, whose tensors have scales in the file, and QUANT_DYNAMIC, whose data
// get theirs as they run.
#include <algorithm>
#include <cmath>

#include "../kernels.h"
#include "../own/own.h"
#include "find.h"
#include "windows.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kBytes = 256;
constexpr int64_t kDeepest = (1 << 16) - 1;  // terms of a sum that 32 bits hold

// What integers stand for: (q - zero) * scale, from `least` to `most`.
struct Grid {
  int32_t dtype = MYC_I8;
  double scale = 1;
  int64_t zero = 0, least = -128, most = 127;

  bool operator==(const Grid& other) const { return dtype == other.dtype && scale == other.scale && zero == other.zero; }
  int64_t nearest(double number) const { return std::clamp<int64_t>(static_cast<int64_t>(std::nearbyint(std::clamp(number / scale, -1e6, 1e6))) + zero, least, most); }
};

bool is_narrow(const FileTensor& t) { return t.dtype == kDataType_INT8 || t.dtype == kDataType_UINT8; }

Grid grid_of(Planner& p, const FileTensor& t) {
  const Scales* const found = t.data ? t.scales.get() : t.meaning.get();
  Grid grid;
  if (!is_narrow(t) || !found || found->scale.size() != 1 || found->bits || !(found->scale[0] > 0) || !std::isfinite(found->scale[0]) || found->shift[0] != 0) {
    p.fail(kNotSupported, message({"'", t.name, "' must be of 8 bits with one scale"}));
    return grid;
  }
  if (t.dtype == kDataType_UINT8) grid.dtype = MYC_U8, grid.least = 0, grid.most = 255;
  grid.scale = found->scale[0], grid.zero = static_cast<int64_t>(found->zero[0]);
  if (grid.zero < grid.least || grid.zero > grid.most) p.fail(kNotSupported, message({"the zero point ", grid.zero, " of '", t.name, "'"}));
  return grid;
}

// The i-th input, data or a constant of 8 bits.
int integers_of(Planner& p, size_t i) {
  const int value = p.input(i);
  return p.ok() && p.stored(i).data ? p.stored_integers(i) : value;
}

// Limits of a result by the activation behind it; false if it is none that limits do.
bool limit(const Grid& grid, int8_t activation, int64_t* low, int64_t* high) {
  *low = grid.least, *high = grid.most;
  if (activation == kActivationType_NO_ACTIVATION) return true;
  if (activation != kActivationType_RELU && activation != kActivationType_RELU6) return false;
  *low = grid.zero;
  if (activation == kActivationType_RELU6) *high = grid.nearest(6);
  return true;
}

int quantized(Planner& p, int x, const Grid& grid) {
  return p.emit("quantize", {x}, QuantizeAttributes{grid.scale, grid.zero, grid.least, grid.most}, Type{grid.dtype, p.type(x).shape});
}

int dequantized(Planner& p, int x, const Grid& grid) {
  return p.emit("dequantize", {x}, QuantizeAttributes{grid.scale, grid.zero, grid.least, grid.most}, Type{MYC_F32, p.type(x).shape});
}

// For each integer of `from` the element of a table in its place.
int looked_up(Planner& p, int x, const Grid& from, const Grid& to, const std::vector<int64_t>& table) {
  std::vector<uint8_t> bytes;
  for (const int64_t q : table) bytes.push_back(static_cast<uint8_t>(q));
  return p.emit("lookup", {x, p.made_constant({to.dtype, {kBytes}}, bytes.data())}, LookupAttributes{from.least < 0 ? 128 : 0}, Type{to.dtype, p.type(x).shape});
}

int requantized(Planner& p, int x, const Grid& from, const Grid& to) {
  if (from == to) return x;
  std::vector<int64_t> table;
  for (int64_t q = from.least; q <= from.most; ++q) table.push_back(to.nearest((q - from.zero) * from.scale));
  return looked_up(p, x, from, to, table);
}

// ---- layers with weights

struct Columns {
  int values = -1, zero = -1;  // integers [O, ...] as they lie in the file, zero points of the columns, if there are any
  std::vector<float> scale;  // of each column
};

Columns columns_of(Planner& p, int64_t outputs) {
  const FileTensor& t = p.stored(1);
  Columns found;
  const bool fits = t.data && t.dtype == kDataType_INT8 && t.scales && !t.scales->bits && t.scales->groups == 1 && element_count(t.shape) > 0 &&
                    std::all_of(t.scales->shift.begin(), t.scales->shift.end(), [](float s) { return s == 0; });
  if (!fits) return p.fail(kNotSupported, "the weights must be constants of int8 with scales"), found;
  if (element_count(t.shape) / std::max<int64_t>(outputs, 1) > kDeepest)
    return p.fail(kNotSupported, message({"sums of ", element_count(t.shape) / std::max<int64_t>(outputs, 1), " products, which 32 bits do not hold"})), found;
  const Scales& scales = *t.scales;
  const bool one = scales.scale.size() == 1;
  if (!one && static_cast<int64_t>(scales.scale.size()) != outputs)
    return p.fail(kInferFailed, message({scales.scale.size(), " scales for ", outputs, " columns"})), found;
  std::vector<int32_t> zeros;
  for (int64_t j = 0; j < outputs; ++j) {
    const size_t k = one ? 0 : static_cast<size_t>(j);
    found.scale.push_back(scales.scale[k]), zeros.push_back(static_cast<int32_t>(scales.zero[k]));
    if (!(found.scale.back() > 0) || !std::isfinite(found.scale.back()) || zeros.back() < -128 || zeros.back() > 127)
      return p.fail(kNotSupported, message({"the scale ", j, " of '", t.name, "'"})), found;
  }
  if (std::any_of(zeros.begin(), zeros.end(), [](int32_t z) { return z != 0; })) found.zero = p.made_constant({MYC_I32, {outputs}}, zeros.data());
  found.values = p.stored_integers(1);
  return found;
}

// The result of a layer: `make(scale of each column, zero, low, high, dtype)` emits it, in float32 or in integers.
template <class Make>
void finish(Planner& p, const Grid& x, const Columns& w, int8_t activation, const Make& make) {
  const FileTensor& file = p.result(0);
  const bool narrow = is_narrow(file);
  if (!narrow && file.dtype != kDataType_FLOAT32) p.fail(kNotSupported, "a result that is neither of 8 bits nor float32");
  const Grid y = narrow ? grid_of(p, file) : Grid();
  if (!p.ok()) return;
  int64_t low, high;
  const bool fused = narrow && limit(y, activation, &low, &high);
  std::vector<float> factors;
  for (const float scale : w.scale) factors.push_back(static_cast<float>(x.scale * scale / (fused ? y.scale : 1)));
  const int scale = p.made_constant({MYC_F32, {static_cast<int64_t>(factors.size())}}, factors.data());
  if (fused) return p.set_output(0, make(scale, y.zero, low, high, y.dtype));
  const int made = activated(p, make(scale, 0, 0, 0, MYC_F32), activation);
  if (p.ok()) p.set_output(0, narrow ? quantized(p, made, y) : made);
}

int bias_of(Planner& p, int64_t outputs) {
  const int bias = p.optional_input(2);
  check_bias(p, bias, outputs);
  if (bias >= 0 && p.ok() && p.type(bias).dtype != MYC_I32) p.fail(kNotSupported, message({"the bias ", text_of(p.type(bias)), ", int32 is needed"}));
  return bias;
}

void convolution(Planner& p) {
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const std::vector<int64_t> w = p.stored(1).shape;
  const Type image = p.type(x);
  const int64_t group = a.get<int64_t>(kConv2DFusion_group, 1);
  const bool depthwise = group > 1 && w.size() == 4 && w[3] == 1 && w[0] == group;
  if (p.ok() && (w.size() != 4 || image.rank() != 4 || image.shape[3] != w[3] * group)) p.fail(kInferFailed, message({"weights do not fit images ", text_of(image)}));
  if (p.ok() && group != 1 && !depthwise) p.fail(kNotSupported, message({group, " groups of several channels in integers"}));
  if (!p.ok()) return;
  const Grid from = grid_of(p, p.stored(0));
  const Columns columns = columns_of(p, w[0]);
  const int bias = bias_of(p, w[0]);
  const Windows windows = convolution_windows(p, image, w);
  if (!p.ok()) return;
  const auto out = [&](int32_t dtype) { return Type{dtype, {image.shape[0], windows.size[0], windows.size[1], w[0]}}; };
  const myc_ints kernel = ints({w[1], w[2]}), stride = ints({windows.stride[0], windows.stride[1]}), dilation = ints({windows.dilation[0], windows.dilation[1]});
  const myc_ints pad = ints({windows.pad[0], windows.pad[1], windows.pad[2], windows.pad[3]});
  const int8_t activation = a.get<int8_t>(kConv2DFusion_activation_type);
  if (depthwise) {
    if (columns.zero >= 0) return (void)p.fail(kNotSupported, "zero points of depthwise weights");
    const int taps = p.once("taps", columns.values, [&] {
      const int turned = p.emit("transpose", {p.view(columns.values, {w[0], w[1] * w[2]})}, myc_transpose_attrs{ints({1, 0})}, Type{MYC_I8, {w[1] * w[2], w[0]}});
      return p.emit("cast", {turned}, myc_cast_attrs{MYC_I16}, Type{MYC_I16, {w[1] * w[2], w[0]}});
    });
    return finish(p, from, columns, activation, [&](int scale, int64_t zero, int64_t low, int64_t high, int32_t dtype) {
      return p.emit("integer_depthwise", {x, taps, scale, bias}, IntegerDepthwiseAttributes{kernel, stride, pad, dilation, from.zero, zero, low, high}, out(dtype));
    });
  }
  const int pack = integer_pack(p, columns.values, columns.zero);
  finish(p, from, columns, activation, [&](int scale, int64_t zero, int64_t low, int64_t high, int32_t dtype) {
    const myc_quantized_conv_attrs attributes{w[0], kernel, stride, pad, dilation, from.zero, zero, low, high, dtype};
    return p.emit("quantized_conv", {x, pack, scale, bias}, attributes, out(dtype));
  });
}

// x [..., in] times weights [out, in] if `transposed`, else [in, out].
void product(Planner& p, int x, bool transposed, int8_t activation) {
  const std::vector<int64_t> w = p.stored(1).shape;
  const Type t = p.type(x);
  if (w.size() != 2) p.fail(kNotSupported, "weights that are no matrix");
  if (p.ok() && (t.rank() < 1 || t.shape.back() != w[transposed ? 1 : 0])) p.fail(kInferFailed, message({"weights do not fit ", text_of(t)}));
  if (!p.ok()) return;
  const int64_t outputs = w[transposed ? 0 : 1];
  const Columns columns = columns_of(p, outputs);
  if (!p.ok()) return;
  const int pack = transposed ? integer_pack(p, columns.values, columns.zero) : p.once("turned integers", columns.values, [&] {
    return integer_pack(p, p.emit("transpose", {columns.values}, myc_transpose_attrs{ints({1, 0})}, Type{MYC_I8, {w[1], w[0]}}), columns.zero);
  });
  Type out{MYC_F32, t.shape};
  out.shape.back() = outputs;
  const int dynamic = p.dynamic_scale(p.input(0));
  if (dynamic >= 0) {
    const int bias = p.optional_input(2);
    check_bias(p, bias, outputs);
    const int scale = p.made_constant({MYC_F32, {outputs}}, columns.scale.data());
    int y = p.emit("quantized_matmul", {x, pack, scale, -1}, myc_quantized_matmul_attrs{outputs, 0, 0, 0, 0, MYC_F32}, out);
    const bool rows = element_count(p.type(dynamic).shape) > 1;
    std::vector<int64_t> shape(static_cast<size_t>(t.rank()), 1);
    if (rows) std::copy(t.shape.begin(), t.shape.end() - 1, shape.begin());
    y = p.emit("mul", {y, p.view(dynamic, shape)}, out);
    if (bias >= 0) y = p.emit("add", {y, bias}, out);
    return p.set_output(0, activated(p, y, activation));
  }
  const Grid from = grid_of(p, p.stored(0));
  const int bias = bias_of(p, outputs);
  if (!p.ok()) return;
  finish(p, from, columns, activation, [&](int scale, int64_t zero, int64_t low, int64_t high, int32_t dtype) {
    out.dtype = dtype;
    return p.emit("quantized_matmul", {x, pack, scale, bias}, myc_quantized_matmul_attrs{outputs, from.zero, zero, low, high, dtype}, out);
  });
}

void mat_mul(Planner& p) {
  const Table& t = p.node().attributes;
  const int x = p.input(0);
  if (t.get<uint8_t>(kMatMulFusion_transpose_a)) p.fail(kNotSupported, "transpose_a of integers");
  if (p.ok()) product(p, x, t.get<uint8_t>(kMatMulFusion_transpose_b), t.get<int8_t>(kMatMulFusion_activation_type));
}

void full_connection(Planner& p) {
  const Table& t = p.node().attributes;
  const int x = p.input(0);
  const Type type = p.type(x);
  const int from = axis_of(p, t.get<uint8_t>(kFullConnection_use_axis) ? t.get<int64_t>(kFullConnection_axis) : 1, type.rank());
  if (!p.ok()) return;
  std::vector<int64_t> shape(type.shape.begin(), type.shape.begin() + from);
  shape.push_back(element_count({type.shape.begin() + from, type.shape.end()}));
  product(p, p.view(x, shape), true, t.get<int8_t>(kFullConnection_activation_type));
}

// ---- layers without weights

void pair(Planner& p, int64_t how, int8_t activation) {
  const int a = integers_of(p, 0), b = integers_of(p, 1);
  if (!p.ok()) return;
  const Grid x = grid_of(p, p.stored(0)), y = grid_of(p, p.stored(1)), z = grid_of(p, p.result(0));
  int64_t low, high;
  if (p.ok() && !limit(z, activation, &low, &high)) p.fail(kNotSupported, "its activation in integers");
  if (!p.ok()) return;
  Type out = broadcast(p, p.type(a), p.type(b));
  if (!p.ok()) return;
  out.dtype = z.dtype;
  const double first = how == 2 ? x.scale * y.scale / z.scale : x.scale / z.scale;
  const CombineAttributes attributes{how, x.zero, y.zero, first, how == 2 ? 1 : y.scale / z.scale, z.zero, low, high};
  p.set_output(0, p.emit("combine", {a, b}, attributes, out));
}

int pooled(Planner& p, int x, const Windows& w, bool largest, const Grid& from, const Grid& to, int64_t low, int64_t high) {
  const Type image = p.type(x);
  const IntegerPoolAttributes attributes{{w.kernel[0], w.kernel[1]}, {w.stride[0], w.stride[1]}, {w.pad[0], w.pad[1]}, largest,
                                         from.zero, from.scale / to.scale, to.zero, low, high};
  return p.emit("integer_pool", {x}, attributes, Type{to.dtype, {image.shape[0], w.size[0], w.size[1], image.shape[3]}});
}

void pool(Planner& p) {
  const int x = p.input(0);
  int8_t activation;
  const Windows windows = pool_windows(p, p.type(x), &activation);
  if (!p.ok()) return;
  const Grid from = grid_of(p, p.stored(0)), to = grid_of(p, p.result(0));
  int64_t low, high;
  if (p.ok() && !limit(to, activation, &low, &high)) p.fail(kNotSupported, "its activation in integers");
  if (p.ok()) p.set_output(0, pooled(p, x, windows, p.node().kind == kOp_MaxPoolFusion, from, to, low, high));
}

void mean(Planner& p) {  // over the pixels of images
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const Type image = p.type(x);
  const std::vector<int64_t> axes = p.integers(p.input(1), "the axes");
  if (!p.ok()) return;
  const std::vector<bool> named = named_axes(p, axes, image.rank());
  const Grid from = grid_of(p, p.stored(0)), to = grid_of(p, p.result(0));
  if (!p.ok()) return;
  const bool fits = a.get<int8_t>(kReduceFusion_mode) == kReduceMode_ReduceMean && !a.get<uint8_t>(kReduceFusion_reduce_to_end) && image.rank() == 4 &&
                    named == std::vector<bool>{false, true, true, false} && image.shape[1] * image.shape[2] > 0;
  if (!fits) return (void)p.fail(kNotSupported, "reductions of integers but means over the pixels of images");
  Windows windows;
  windows.kernel[0] = image.shape[1], windows.kernel[1] = image.shape[2], windows.size[0] = windows.size[1] = 1;
  const int y = pooled(p, x, windows, false, from, to, to.least, to.most);
  p.set_output(0, a.get<uint8_t>(kReduceFusion_keep_dims) ? y : p.view(y, {image.shape[0], image.shape[3]}));
}

void join(Planner& p) {
  const Grid to = grid_of(p, p.result(0));
  std::vector<int> values;
  for (size_t i = 0; i < p.node().inputs.size() && p.ok(); ++i) {
    const int x = p.input(i);
    if (p.stored(i).data) p.fail(kNotSupported, "constants beside integers");
    const Grid from = grid_of(p, p.stored(i));
    if (p.ok()) values.push_back(requantized(p, x, from, to));
  }
  if (p.ok()) p.set_output(0, p.plainly(values));
}

// What works on each element alone, by a table of what its operator gives for all integers.
void element(Planner& p) {
  const int x = p.input(0);
  if (p.ok() && p.stored(0).data) p.fail(kNotSupported, "integers that are constants");
  if (!p.ok()) return;
  const Grid from = grid_of(p, p.stored(0)), to = grid_of(p, p.result(0));
  if (!p.ok()) return;
  std::vector<float> numbers;
  for (int64_t q = from.least; q <= from.most; ++q) numbers.push_back(static_cast<float>((q - from.zero) * from.scale));
  const int made = p.plainly({p.made_constant({MYC_F32, {kBytes}}, numbers.data())});
  if (!p.ok()) return;
  const auto* const found = reinterpret_cast<const float*>(p.constant(made));
  if (!found || p.type(made).dtype != MYC_F32 || p.type(made).shape != std::vector<int64_t>{kBytes})
    return (void)p.fail(kNotSupported, "an operator on integers that is not one of each element");
  std::vector<int64_t> table;
  for (int64_t i = 0; i < kBytes; ++i) table.push_back(std::isnan(found[i]) ? to.least : to.nearest(found[i]));
  p.set_output(0, looked_up(p, x, from, to, table));
}

// What moves or chooses elements: they must stand for the same numbers afterwards.
void move(Planner& p) {
  Grid all;
  bool any = false;
  const auto same = [&](const FileTensor& t) {
    if (!is_narrow(t)) return;
    const Grid grid = grid_of(p, t);
    if (any && p.ok() && !(grid == all)) p.fail(kNotSupported, message({"'", t.name, "' has another scale than what it is made of"}));
    all = grid, any = true;
  };
  if (p.stored(0).data) p.fail(kNotSupported, "integers that are constants");
  same(p.stored(0));
  for (size_t i = 0; i < p.node().outputs.size() && p.ok(); ++i) same(p.result(i));
  if (p.ok()) find_operator(p.node().kind)(p);
}

}  // namespace

void integer_operator(Planner& p) {
  ask_for_part("integers");
  if (p.node().inputs.empty() || p.node().outputs.empty()) return (void)p.fail(kOperatorAttribute, "it must have inputs and outputs");
  const Table& a = p.node().attributes;
  switch (p.node().kind) {
    case kOp_Conv2DFusion: return convolution(p);
    case kOp_MatMulFusion: return mat_mul(p);
    case kOp_FullConnection: return full_connection(p);
    case kOp_AddFusion: return pair(p, 0, a.get<int8_t>(kAddFusion_activation_type));
    case kOp_SubFusion: return pair(p, 1, a.get<int8_t>(kSubFusion_activation_type));
    case kOp_MulFusion: return pair(p, 2, a.get<int8_t>(kMulFusion_activation_type));
    case kOp_MaxPoolFusion:
    case kOp_AvgPoolFusion: return pool(p);
    case kOp_ReduceFusion: return mean(p);
    case kOp_Concat: return join(p);
    case kOp_Activation:
    case kOp_Abs:
    case kOp_Elu:
    case kOp_Erf:
    case kOp_ExpFusion:
    case kOp_LeakyRelu:
    case kOp_Neg:
    case kOp_Sqrt:
    case kOp_Square: return element(p);
    case kOp_Crop:
    case kOp_DepthToSpace:
    case kOp_ExpandDims:
    case kOp_Flatten:
    case kOp_Reshape:
    case kOp_SliceFusion:
    case kOp_SpaceToDepth:
    case kOp_Split:
    case kOp_Squeeze:
    case kOp_StridedSlice:
    case kOp_Transpose:
    case kOp_Unsqueeze: return move(p);
    case kOp_QuantDTypeCast:
    case kOp_DynamicQuant: return find_operator(p.node().kind)(p);
    default: p.fail(kNotSupported, "it has no form for integers of 8 bits");
  }
}

OPERATOR(QuantDTypeCast) {  // float32 to integers, back, or to integers with another scale
  ask_for_part("integers");
  const int x = p.input(0);
  if (!p.ok()) return;
  const FileTensor &from = p.stored(0), &to = p.result(0);
  if (from.data) return (void)p.fail(kNotSupported, "a cast of a constant");
  const bool narrow = is_narrow(from), narrows = is_narrow(to);
  if (p.type(x).dtype != (narrow ? abi_dtype(from.dtype) : int32_t{MYC_F32}) || (!narrows && to.dtype != kDataType_FLOAT32))
    return (void)p.fail(kNotSupported, message({"a cast of ", text_of(p.type(x)), " to dtype number ", to.dtype}));
  const Grid x_grid = narrow ? grid_of(p, from) : Grid(), y_grid = narrows ? grid_of(p, to) : Grid();
  if (!p.ok()) return;
  if (narrow && narrows) return p.set_output(0, requantized(p, x, x_grid, y_grid));
  if (!narrow && !narrows) return p.set_output(0, x);
  p.set_output(0, narrows ? quantized(p, x, y_grid) : dequantized(p, x, x_grid));
}

OPERATOR(DynamicQuant) {  // float32 to int8 by the largest of the tensor, or with `activation_channel` of each row
  ask_for_part("integers");
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  if (!p.ok()) return;
  const Type type = p.type(x);
  const bool rows = a.get<uint8_t>(kDynamicQuant_activation_channel);
  if (type.dtype != MYC_F32 || type.shape.empty()) return (void)p.fail(kNotSupported, "data " + text_of(type));
  if (a.get<int64_t>(kDynamicQuant_dst_type, kDynamicQuant_dst_type_default) != kDataType_INT8) return (void)p.fail(kNotSupported, "other types than int8");
  const int64_t count = rows ? element_count(type.shape) / std::max<int64_t>(type.shape.back(), 1) : 1;
  const std::vector<int> made = p.emit_all("dynamic_quantize", {x}, DynamicQuantizeAttributes{!rows}, {Type{MYC_I8, type.shape}, Type{MYC_F32, {count}}});
  p.set_output(0, made[0]);
  if (p.ok()) p.set_dynamic_scale(made[0], made[1]);
}

}  // namespace mycelia::lite
