// Operators that make tensors from sizes, limits and single numbers.
#include <algorithm>
#include <cmath>

#include "../own/own.h"
#include "common.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 40;

// A value of one element in every place of a shape.
int filled(Planner& p, int value, const std::vector<int64_t>& shape) {
  if (shape.size() > MYC_MAX_RANK) return p.fail(kOperatorAttribute, "the shape has " + std::to_string(shape.size()) + " axes");
  for (const int64_t n : shape)
    if (n < 0 || n > kMostNumbers) return p.fail(kOperatorAttribute, "the shape has " + std::to_string(n));
  if (p.ok() && element_count(p.type(value).shape) != 1) return p.fail(kOperatorAttribute, "the value is " + text_of(p.type(value)));
  if (!p.ok()) return 0;
  const Type out{p.type(value).dtype, shape};
  return p.emit("broadcast_to", {p.view(value, {})}, myc_broadcast_to_attrs{ints(p, shape)}, out);
}

int as_int32(Planner& p, int64_t number) {
  const int32_t value = static_cast<int32_t>(number);
  if (value != number) return p.fail(kInferFailed, std::to_string(number) + " is no int32");
  return p.made_constant({MYC_I32, {}}, &value);
}

// first, first + step, ...
int counted(Planner& p, int first, int step, int64_t count) {
  const Type out{p.type(first).dtype, {count}};
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) numbers[i] = i;
  int y = p.made_constant({MYC_I64, {count}}, numbers.data());
  if (out.dtype != MYC_I64) y = p.emit("cast", {y}, myc_cast_attrs{out.dtype}, out);
  return p.emit("add", {p.emit("mul", {y, p.view(step, {})}, out), p.view(first, {})}, out);
}

int one_like(Planner& p, double number) {
  const Type type = p.type(p.input(0));
  return p.ok() ? filled(p, p.scalar(type.dtype, number), type.shape) : 0;
}

}  // namespace

OPERATOR(OnesLike) { p.set_output(0, one_like(p, 1)); }
OPERATOR(ZerosLike) { p.set_output(0, one_like(p, 0)); }

OPERATOR(Rank) { p.set_output(0, as_int32(p, p.type(p.input(0)).rank())); }
OPERATOR(Size) { p.set_output(0, as_int32(p, element_count(p.type(p.input(0)).shape))); }

OPERATOR(ConstantOfShape) {
  const Table& a = p.node().attributes;
  const std::vector<int64_t> shape = p.integers(p.input(0), "the shape");
  const Span<float> value = a.span<float>(kConstantOfShape_value);
  const int32_t dtype = abi_dtype(static_cast<int32_t>(a.get<int64_t>(kConstantOfShape_data_type)));
  if (value.size > 1) p.fail(kOperatorAttribute, "value has " + std::to_string(value.size) + " numbers");
  if (dtype < 0) p.fail(kOperatorAttribute, "data_type " + std::to_string(a.get<int64_t>(kConstantOfShape_data_type)) + " is unknown");
  if (p.ok()) p.set_output(0, filled(p, p.scalar(dtype, value.size ? value[0] : 0), shape));
}

OPERATOR(Fill) {  // value, shape
  const int value = p.input(0);
  const std::vector<int64_t> shape = p.integers(p.input(1), "the shape");
  if (p.ok()) p.set_output(0, filled(p, value, shape));
}

OPERATOR(FillV2) {  // shape, value
  const int value = p.input(1);
  const std::vector<int64_t> shape = p.integers(p.input(0), "the shape");
  if (p.ok()) p.set_output(0, filled(p, value, shape));
}

OPERATOR(Range) {  // first, limit, step as inputs of one dtype, or as attributes
  const Table& a = p.node().attributes;
  int first, limit, step;
  if (p.node().inputs.size() == 3) {
    first = p.input(0), limit = p.input(1), step = p.input(2);
  } else {
    if (!p.node().inputs.empty() || a.get<int64_t>(kRange_d_type) != kDataType_INT32) {
      p.fail(kNotSupported, std::to_string(p.node().inputs.size()) + " inputs and d_type " + std::to_string(a.get<int64_t>(kRange_d_type)));
      return;
    }
    first = as_int32(p, a.get<int64_t>(kRange_start)), limit = as_int32(p, a.get<int64_t>(kRange_limit));
    step = as_int32(p, a.get<int64_t>(kRange_delta, 1));
  }
  if (!p.ok()) return;
  const int32_t dtype = p.type(first).dtype;
  for (const int value : {first, limit, step})
    if (p.type(value).dtype != dtype || element_count(p.type(value).shape) != 1) p.fail(kInferFailed, "a limit or step " + text_of(p.type(value)));
  int64_t count = 0;
  if (dtype == MYC_F32) {
    const Type between = broadcast(p, p.type(limit), p.type(first)), one = broadcast(p, between, p.type(step));
    const int exact = p.emit("ceil", {p.emit("div", {p.emit("sub", {limit, first}, between), step}, one)}, one);
    count = std::max<int64_t>(number_of(p, p.emit("cast", {exact}, myc_cast_attrs{MYC_I64}, Type{MYC_I64, one.shape}), "the number of elements"), 0);
  } else {
    const int64_t begin = number_of(p, first, "the first number"), end = number_of(p, limit, "the limit"), by = number_of(p, step, "the step");
    if (p.ok() && (!by || std::max(std::max(std::abs(begin), std::abs(end)), std::abs(by)) > kMostNumbers)) p.fail(kOperatorAttribute, "limits or a step out of range");
    if (p.ok()) count = std::max<int64_t>((end - begin + by - (by > 0 ? 1 : -1)) / by, 0);
  }
  if (p.ok() && count > (int64_t{1} << 28)) p.fail(kNotSupported, std::to_string(count) + " numbers");
  if (p.ok()) p.set_output(0, counted(p, first, step, count));
}

OPERATOR(LinSpace) {  // first, last, how many
  const int first = p.input(0), last = p.input(1);
  const int64_t count = number_of(p, p.input(2), "the number of elements");
  if (!p.ok()) return;
  const Type one{p.type(first).dtype, {}};
  if (p.type(last).dtype != one.dtype || element_count(p.type(first).shape) != 1 || element_count(p.type(last).shape) != 1)
    p.fail(kInferFailed, "limits " + text_of(p.type(first)) + " and " + text_of(p.type(last)));
  if (count < 1 || count > (int64_t{1} << 28)) p.fail(kOperatorAttribute, std::to_string(count) + " numbers");
  const int span = p.emit("sub", {p.view(last, {}), p.view(first, {})}, one);
  const int step = p.emit("div", {span, p.scalar(one.dtype, static_cast<double>(std::max<int64_t>(count - 1, 1)))}, one);
  if (p.ok()) p.set_output(0, counted(p, first, step, count));
}

OPERATOR(InvertPermutation) {
  const int x = p.input(0);
  const std::vector<int64_t> order = p.integers(x, "the order");
  std::vector<int32_t> places(order.size(), -1);
  for (size_t i = 0; i < order.size() && p.ok(); ++i) {
    const bool fits = order[i] >= 0 && order[i] < static_cast<int64_t>(order.size()) && places[order[i]] < 0;
    if (fits) places[order[i]] = static_cast<int32_t>(i);
    else p.fail(kOperatorAttribute, "the input is no permutation");
  }
  if (p.ok() && p.type(x).dtype != MYC_I32) p.fail(kNotSupported, "a permutation " + text_of(p.type(x)));
  if (p.ok()) p.set_output(0, p.made_constant(p.type(x), places.data()));
}

namespace {

// Random numbers of float32; equal in every run where one of the seeds is not 0.
void random_numbers(Planner& p, const RandomAttributes& attributes) {
  const std::vector<int64_t> shape = p.integers(p.input(0), "the shape");
  for (const int64_t n : shape)
    if (n < 0 || n > kMostNumbers) p.fail(kOperatorAttribute, "the shape has " + std::to_string(n));
  // Two results, since one of constants alone would be computed once for all runs.
  if (p.ok()) p.set_output(0, p.emit_all("random", {}, attributes, {Type{MYC_F32, shape}, Type{MYC_BOOL, {1}}})[0]);
}

}  // namespace

OPERATOR(UniformReal) {
  const Table& a = p.node().attributes;
  random_numbers(p, {a.get<int64_t>(kUniformReal_seed), a.get<int64_t>(kUniformReal_seed2), 0, 1, 0});
}
OPERATOR(RandomStandardNormal) {
  const Table& a = p.node().attributes;
  random_numbers(p, {a.get<int64_t>(kRandomStandardNormal_seed), a.get<int64_t>(kRandomStandardNormal_seed2), 0, 1, 1});
}
OPERATOR(RandomNormal) {
  const Table& a = p.node().attributes;
  const float seed = a.get<float>(kRandomNormal_seed);
  if (!(std::abs(seed) < 9e15f)) p.fail(kOperatorAttribute, "seed is out of range");
  if (p.ok()) random_numbers(p, {static_cast<int64_t>(seed), 0, a.get<float>(kRandomNormal_mean), a.get<float>(kRandomNormal_scale), 1});
}

}  // namespace mycelia::lite
