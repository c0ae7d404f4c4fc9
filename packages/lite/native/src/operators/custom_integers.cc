// Custom nodes on integers of 8 bits with a scale, as TensorFlow Lite's kernels compute with them.
#include <limits>
#include <numeric>

#include "../own/own.h"
#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

// Fails unless x is of 8 bits and the table has an element for each of its integers; the byte of the first one.
int64_t first_of(Planner& p, const Type& x, const Type& table) {
  if (x.dtype != MYC_I8 && x.dtype != MYC_U8) p.fail(kNotSupported, "places " + text_of(x) + " in a table of 256 elements");
  if (table.shape != std::vector<int64_t>{256} || (table.dtype != MYC_I8 && table.dtype != MYC_U8 && table.dtype != MYC_I32))
    p.fail(kNotSupported, "a table " + text_of(table));
  return x.dtype == MYC_I8 ? 128 : 0;
}

constexpr int64_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();

// The zero point and limits of a scaling and the dtype of its results.
template <class Attributes>
void read_limits(Planner& p, Attributes& a, int32_t* dtype) {
  *dtype = abi_dtype(static_cast<int32_t>(custom_int(p, "dtype", 0, 1 << 10)));
  const bool is_wide = *dtype == MYC_I32, is_signed = *dtype != MYC_U8;
  const int64_t least = is_wide ? kLeast : is_signed ? -128 : 0, most = is_wide ? kMost : is_signed ? 127 : 255;
  a.zero = custom_int(p, "zero", kLeast, kMost);
  a.low = custom_int(p, "low", least, most), a.high = custom_int(p, "high", least, most);
  if (!p.ok()) return;
  if (*dtype != MYC_I8 && *dtype != MYC_U8 && !is_wide) p.fail(kNotSupported, "other types than int32 and those of 8 bits");
  if (a.low > a.high) p.fail(kOperatorAttribute, "limits without a number between them");
}

RescaleAttributes scaling(Planner& p, int32_t* dtype) {
  RescaleAttributes a{};
  a.multiplier = custom_int(p, "multiplier", 0, kMost);
  a.left = custom_int(p, "left", 0, 31), a.right = custom_int(p, "right", 0, 31);
  a.up = custom_int(p, "up", 0, 1);
  read_limits(p, a, dtype);
  return a;
}

// The factors [3, columns] (multiplier, shift, whether halves go up) as the kernel reads them, repeated to whole blocks; -1 after a fault.
int columns_of(Planner& p, int factors, int64_t columns, int64_t* grows) {
  constexpr int64_t kBlock = 8, kMostColumns = int64_t{1} << 24;
  const uint8_t* const data = p.constant(factors);
  if (!data || p.type(factors).dtype != MYC_I32 || p.type(factors).shape != std::vector<int64_t>{3, columns} || columns < 1 || columns > kMostColumns)
    return p.fail(kNotSupported, message({"factors ", text_of(p.type(factors)), ", a constant of int32 with 3 rows of ", columns, " is needed"})), -1;
  const auto* const rows = reinterpret_cast<const int32_t*>(data);
  const int64_t period = std::lcm(columns, kBlock);
  std::vector<int32_t> made(static_cast<size_t>(4 * period));
  for (int64_t j = 0; j < period; ++j) {
    const int64_t c = j % columns;
    const int32_t multiplier = rows[c], shift = rows[columns + c], up = rows[2 * columns + c];
    if (multiplier < 0 || shift < -31 || shift > 31 || up < 0 || up > 1)
      return p.fail(kNotSupported, message({"factor ", multiplier, " with shift ", shift, " and rounding ", up, " of column ", c})), -1;
    *grows |= shift > 0;
    made[j] = multiplier, made[period + j] = std::max(shift, 0), made[2 * period + j] = std::max(-shift, 0);
    made[3 * period + j] = shift < 0 && !up ? -1 : 0;
  }
  return p.made_constant({MYC_I32, {4, period}}, made.data());
}

}  // namespace

int integer_pack(Planner& p, int weights, int zero) {
  const Type w = p.type(weights);
  const auto widened = [&](int value, std::vector<int64_t> shape) { return p.emit("cast", {p.view(value, shape)}, myc_cast_attrs{MYC_I16}, Type{MYC_I16, shape}); };
  if (p.is_portable()) {
    const int wide = widened(weights, w.shape);
    std::vector<int64_t> columns(w.shape.size(), 1);
    columns[0] = w.shape[0];
    return zero < 0 ? wide : p.emit("sub", {wide, widened(zero, columns)}, Type{MYC_I16, w.shape});
  }
  return p.once(message({"integers ", zero < 0 ? uintptr_t{0} : reinterpret_cast<uintptr_t>(p.constant(zero))}), weights, [&] {
    const bool is_image = w.rank() == 4;
    const int turned = is_image ? p.emit("transpose", {weights}, myc_transpose_attrs{ints({0, 3, 1, 2})},
                                         Type{w.dtype, {w.shape[0], w.shape[3], w.shape[1], w.shape[2]}})
                                : weights;
    const int64_t depth = element_count(w.shape) / w.shape[0];
    return p.emit("quantized_pack", {turned, zero}, Type{MYC_I16, {(depth + depth % 2) * padded(w.shape[0])}});
  });
}

CUSTOM(lookup) {  // for each integer of 8 bits the element of a table of 256 in its place
  const int x = p.input(0), table = p.input(1);
  if (!p.ok()) return;
  const int64_t first = first_of(p, p.type(x), p.type(table));
  if (p.ok()) p.set_output(0, p.emit("lookup", {x, table}, LookupAttributes{first}, Type{p.type(table).dtype, p.type(x).shape}));
}

CUSTOM(pair) {  // integers of 8 bits of two tensors by tables of int32, what these have added, subtracted or multiplied, and scaled
  const int x = p.input(0), y = p.input(1), of_x = p.input(2), of_y = p.input(3);
  if (!p.ok()) return;
  int32_t dtype = 0;
  PairAttributes a{};
  a.scale = scaling(p, &dtype);
  a.how = custom_int(p, "how", 0, 2);
  a.first = first_of(p, p.type(x), p.type(of_x));
  const Type out = broadcast(p, p.type(x), p.type(y));
  if (first_of(p, p.type(y), p.type(of_y)) != a.first || dtype != p.type(x).dtype || p.type(of_x).dtype != MYC_I32 || p.type(of_y).dtype != MYC_I32)
    p.fail(kNotSupported, "other types than one of 8 bits, and tables of int32");
  if (p.ok()) p.set_output(0, p.emit("pair", {x, y, of_x, of_y}, a, out));
}

CUSTOM(rescale) {  // integers times a real number, as a multiplier and shifts, plus a zero point, within limits
  const int x = p.input(0);
  int32_t dtype = 0;
  const RescaleAttributes a = scaling(p, &dtype);
  if (!p.ok()) return;
  if (p.type(x).dtype != MYC_I32) p.fail(kNotSupported, "other types than int32 and those of 8 bits");
  if (p.ok()) p.set_output(0, p.emit("rescale", {x}, a, Type{dtype, p.type(x).shape}));
}

// Sums of products of integers of 8 bits, exact in int32, given as float32: of rows with weights [O, I], or a convolution of images
// [N, H, W, I] with weights [O, kh, kw, I]. Inputs: data, weights, zero points of the weights [O], a bias [O].
CUSTOM(integer_products) {
  const int x = p.input(0), weights = p.input(1), zero = p.optional_input(2), bias = p.optional_input(3);
  const int64_t x_zero = custom_int(p, "x_zero", -128, 255);
  const std::vector<int64_t> stride = custom_ints(p, "stride", 2, 1, kMostSize), dilation = custom_ints(p, "dilation", 2, 1, kMostSize);
  const std::vector<int64_t> pad = custom_ints(p, "pad", 4, 0, kMostSize);
  if (!p.ok()) return;
  const Type image = p.type(x), w = p.type(weights);
  const bool fits = (image.dtype == MYC_I8 || image.dtype == MYC_U8) && w.dtype == MYC_I8 && p.constant(weights) && element_count(w.shape) &&
                    (w.rank() == 2 || (w.rank() == 4 && image.rank() == 4)) && image.rank() && image.shape.back() == w.shape.back();
  if (!fits) {
    p.fail(kNotSupported, message({"a product of ", text_of(image), " with weights ", text_of(w)}));
    return;
  }
  const int64_t outputs = w.shape[0];
  for (const int vector : {zero, bias})
    if (vector >= 0 && (p.type(vector).dtype != MYC_I32 || p.type(vector).shape != std::vector<int64_t>{outputs} || (vector == zero && !p.constant(zero))))
      p.fail(kNotSupported, message({text_of(p.type(vector)), " for ", outputs, " columns"}));
  Type out{MYC_F32, image.shape};
  out.shape.back() = outputs;
  for (int d = 0; w.rank() == 4 && d < 2; ++d) {
    const int64_t span = (w.shape[1 + d] - 1) * dilation[d] + 1, covered = image.shape[1 + d] + pad[d] + pad[2 + d];
    if (dilation[d] > kMostSize / w.shape[1 + d] || span > covered) p.fail(kInferFailed, message({"windows over ", text_of(image), " have no place"}));
    out.shape[1 + d] = (covered - span) / stride[d] + 1;
  }
  if (!p.ok()) return;
  const std::vector<float> ones(static_cast<size_t>(outputs), 1.0f);
  const int scale = p.made_constant({MYC_F32, {outputs}}, ones.data()), pack = integer_pack(p, weights, zero);
  if (w.rank() == 2) {
    p.set_output(0, p.emit("quantized_matmul", {x, pack, scale, bias}, myc_quantized_matmul_attrs{outputs, x_zero, 0, 0, 0, MYC_F32}, out));
    return;
  }
  const myc_quantized_conv_attrs attributes{outputs, ints({w.shape[1], w.shape[2]}), ints(p, stride), ints(p, pad), ints(p, dilation), x_zero, 0, 0, 0, MYC_F32};
  p.set_output(0, p.emit("quantized_conv", {x, pack, scale, bias}, attributes, out));
}

CUSTOM(rescale_columns) {  // the same of whole numbers in float32 or int32 with a multiplier and shifts for each column
  const int x = p.input(0), factors = p.input(1);
  int32_t dtype = 0;
  RescaleColumnsAttributes a{};
  if (p.ok()) a.together = custom_int(p, "together", 0, 1 << 10), read_limits(p, a, &dtype);
  if (!p.ok()) return;
  const Type type = p.type(x);
  if ((type.dtype != MYC_F32 && type.dtype != MYC_I32) || type.shape.empty()) {
    p.fail(kNotSupported, "columns of " + text_of(type));
    return;
  }
  if (dtype == MYC_I32 || a.zero < -128 || a.zero > 255) p.fail(kNotSupported, "results that are not of 8 bits");
  const int columns = columns_of(p, factors, type.shape.back(), &a.grows);
  if (p.ok()) p.set_output(0, p.emit("rescale_columns", {x, columns}, a, Type{dtype, type.shape}));
}

}  // namespace mycelia::lite
