// Ops on dtypes without a kernel, through a wider dtype that has one: integers of 8 and 16 bits through int32, unsigned ones of
// 32 and 64 bits through int64, 16-bit floats through float32. Results are those of the narrow type: sums, products and shifts
// wrap around alike, everything else fits.
#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "mycelia/op_attrs.h"
#include "plan.h"
#include "schema.h"

namespace mycelia::lite {

using namespace schema;

namespace {

bool one_of(const char* op, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return !std::strcmp(op, name); });
}

// Of integers modulo 2^64 alike with and without a sign.
bool ignores_sign(const char* op) {
  return one_of(op, {"add", "sub", "mul", "neg", "square", "sum", "equal", "not_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "invert",
                     "bitwise_left_shift", "mat_mul", "batch_matmul", "cumsum"});
}

// By the order of elements alone: with the highest bit turned, uint64 has the order of int64.
bool by_order(const char* op) {
  return one_of(op, {"less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "reduce_max", "reduce_min", "topk", "sort", "argmax",
                     "argmin"});
}

// Ops that are not defined for bool but give bool where they are computed with 0 and 1.
bool of_truth(const char* op) { return one_of(op, {"maximum", "minimum", "reduce_max", "reduce_min"}); }

}  // namespace

int32_t Planner::wider(const char* op, int32_t dtype) const {
  switch (dtype) {
    case MYC_I8:
    case MYC_I16:
    case MYC_U8:
    case MYC_U16: return MYC_I32;
    case MYC_U32: return MYC_I64;
    case MYC_U64: return ignores_sign(op) || by_order(op) ? MYC_I64 : -1;
    case MYC_F16:
    case MYC_BF16: return MYC_F32;
    case MYC_BOOL: return of_truth(op) ? MYC_I32 : -1;
    default: return -1;
  }
}

std::vector<int> Planner::emit_wide(const char* op, const std::vector<int>& inputs, const std::vector<uint8_t>& attributes, const std::vector<Type>& outs,
                                    int32_t narrow, int32_t wide) {
  ask_for_part("wide");
  const bool turn = narrow == MYC_U64 && by_order(op);
  const auto turned = [&](int value) {
    const int64_t high = INT64_MIN;
    if (!turn) return value;
    const int bit = made_constant({MYC_I64, {}}, &high);  // first: it moves what `type` refers to
    return emit("bitwise_xor", {value, bit}, type(value));
  };
  std::vector<int> widened = inputs;
  for (int& value : widened)
    if (value >= 0 && type(value).dtype == narrow)
      value = turned(emit("cast", {value}, myc_cast_attrs{wide}, Type{wide, type(value).shape}));
  std::vector<Type> types = outs;
  for (Type& t : types)
    if (t.dtype == narrow) t.dtype = wide;
  std::vector<int> made;
  if (types.size() == 1) made.push_back(emit(op, widened, attributes, types[0]));
  else made = emit_all(op, widened, attributes, types);
  for (size_t i = 0; i < outs.size(); ++i)
    if (outs[i].dtype == narrow) made[i] = emit("cast", {turned(made[i])}, myc_cast_attrs{narrow}, outs[i]);
  return made;
}

}  // namespace mycelia::lite
