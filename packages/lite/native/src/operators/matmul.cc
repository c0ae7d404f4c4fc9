// MatMulFusion and FullConnection: products, by packed weights where the second matrix is a constant.
#include <algorithm>

#include "common.h"
#include "mycelia/cpu.h"

namespace mycelia::lite {

using namespace schema;

void check_bias(Planner& p, int bias, int64_t channels) {
  if (bias >= 0 && p.type(bias).shape != std::vector<int64_t>{channels})
    p.fail(kInferFailed, message({"the bias ", text_of(p.type(bias)), " does not fit ", channels, " channels"}));
}

namespace {

// x [..., in] times a constant matrix, [out, in] if `transposed`, plus the bias.
int linear(Planner& p, int x, Weights& weight, bool transposed, int bias, int8_t activation) {
  const Type t = p.type(x), w = weight.type();
  const int64_t outputs = w.shape[transposed ? 0 : 1], depth = w.shape[transposed ? 1 : 0];
  if (t.rank() < 1 || t.shape.back() != depth)
    return p.fail(kInferFailed, message({text_of(t), " cannot be multiplied by ", text_of(w), transposed ? ", transposed" : ""}));
  check_bias(p, bias, outputs);
  const int64_t rows = element_count(t.shape) / std::max<int64_t>(depth, 1);
  const bool halved = p.is_fast() && myc_cpu_product_algorithm(rows, outputs, depth) == MYC_PRODUCT_STRASSEN;
  Type out = t;
  out.shape.back() = outputs;
  if (LowBit low; weight.low_bit(transposed, &low)) return p.low_bit_linear(x, low, bias, activation, out);
  const int64_t fused = fused_activation(activation);
  const int pack = halved ? weight.halves(transposed) : weight.panels(transposed);
  const int y = p.emit("linear", {x, pack, bias, -1}, myc_linear_attrs{outputs, halved ? MYC_PRODUCT_STRASSEN : MYC_PRODUCT_PLAIN, fused < 0 ? 0 : fused}, out);
  return fused < 0 ? activated(p, y, activation) : y;
}

int product(Planner& p, int a, int b, bool transpose_a, bool transpose_b, int bias, int8_t activation) {
  const Type s = p.type(a), t = p.type(b);
  if (s.rank() < 2 || t.rank() < 2) return p.fail(kNotSupported, message({"a product of ", text_of(s), " and ", text_of(t)}));
  const int64_t rows = s.shape[s.rank() - (transpose_a ? 1 : 2)], depth = s.shape[s.rank() - (transpose_a ? 2 : 1)];
  const int64_t columns = t.shape[t.rank() - (transpose_b ? 2 : 1)];
  if (t.shape[t.rank() - (transpose_b ? 1 : 2)] != depth)
    return p.fail(kInferFailed, message({text_of(s), " cannot be multiplied by ", text_of(t)}));
  Type out{s.dtype, {}};
  const int rank = std::max(s.rank(), t.rank());
  for (int i = 0; i < rank - 2; ++i) {
    const int at_s = i - (rank - s.rank()), at_t = i - (rank - t.rank());
    const int64_t m = at_s >= 0 ? s.shape[at_s] : 1, n = at_t >= 0 ? t.shape[at_t] : 1;
    if (m != n && m != 1 && n != 1) return p.fail(kInferFailed, message({"batches of ", text_of(s), " and ", text_of(t), " do not agree"}));
    out.shape.push_back(m == 1 ? n : m);
  }
  out.shape.push_back(rows);
  out.shape.push_back(columns);
  check_bias(p, bias, columns);
  const char* op = rank == 2 ? "mat_mul" : "batch_matmul";
  int y = p.emit(op, {a, b}, myc_mat_mul_attrs{transpose_a, transpose_b}, out);
  if (bias >= 0) y = p.emit("add", {y, bias}, out);
  return activated(p, y, activation);
}

}  // namespace

OPERATOR(MatMulFusion) {
  const Table& t = p.node().attributes;
  const int a = p.input(0), bias = p.optional_input(2);
  Weights b(p, 1);
  const bool transpose_a = t.get<uint8_t>(kMatMulFusion_transpose_a), transpose_b = t.get<uint8_t>(kMatMulFusion_transpose_b);
  const int8_t activation = t.get<int8_t>(kMatMulFusion_activation_type);
  const bool packed = b.is_constant() && b.type().rank() == 2 && b.type().dtype == MYC_F32 && !transpose_a;
  p.set_output(0, packed ? linear(p, a, b, transpose_b, bias, activation) : product(p, a, b.matrix(), transpose_a, transpose_b, bias, activation));
}

OPERATOR(FullConnection) {
  const Table& t = p.node().attributes;
  const int64_t axis = t.get<uint8_t>(kFullConnection_use_axis) ? t.get<int64_t>(kFullConnection_axis) : 1;
  int x = p.input(0);
  Weights weight(p, 1);
  const Type type = p.type(x);
  if (!weight.is_constant() || weight.type().rank() != 2) {
    p.fail(kNotSupported, "the weights must be a constant matrix");
    return;
  }
  const int from = axis_of(p, axis, type.rank());
  std::vector<int64_t> shape(type.shape.begin(), type.shape.begin() + from);
  shape.push_back(element_count({type.shape.begin() + from, type.shape.end()}));
  x = p.view(x, shape);
  const int bias = t.get<uint8_t>(kFullConnection_has_bias) ? p.input(2) : -1;
  if (p.ok()) p.set_output(0, linear(p, x, weight, true, bias, t.get<int8_t>(kFullConnection_activation_type)));
}

// x [N, T, C], a constant matrix, a bias: each row with its neighbours at the offsets `context`, as far as all of them are there,
// times the matrix.
OPERATOR(Affine) {
  const Table& t = p.node().attributes;
  const int x = p.input(0), bias = p.optional_input(2);
  Weights weight(p, 1);
  const Type type = p.type(x);
  const std::vector<int64_t> context = numbers(t.span<int64_t>(kAffine_context));
  if (p.ok() && (!weight.is_constant() || weight.type().rank() != 2 || weight.type().dtype != MYC_F32)) p.fail(kNotSupported, "the weights must be a constant matrix");
  if (p.ok() && t.get<uint8_t>(kAffine_transpose_a)) p.fail(kNotSupported, "transpose_a");
  if (p.ok() && type.rank() != 3) p.fail(kInferFailed, message({"rows must be [N, T, C], but are ", text_of(type)}));
  if (!p.ok()) return;
  const int64_t each = static_cast<int64_t>(context.size()), size = type.shape[1];
  if (!each || t.get<int64_t>(kAffine_output_dim) != each * type.shape[2]) {
    p.fail(kOperatorAttribute, message({"context and output_dim do not fit ", text_of(type)}));
    return;
  }
  const auto [low, high] = std::minmax_element(context.begin(), context.end());
  if (*low < -size || *high > size || *high - *low >= size) {
    p.fail(kInferFailed, message({text_of(type), " has fewer rows than context reaches"}));
    return;
  }
  std::vector<int64_t> places;
  for (int64_t row = -*low; row < size - *high; ++row)
    for (const int64_t offset : context) places.push_back(row + offset);
  const int rows = spliced(p, x, places, each);
  p.set_output(0, linear(p, rows, weight, t.get<uint8_t>(kAffine_transpose_b), bias, t.get<int8_t>(kAffine_activation_type)));
}

}  // namespace mycelia::lite
