// Custom nodes on integers of 8 bits with a scale, as TensorFlow Lite's kernels compute with them.
#include <limits>

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

// The attributes of a scaling and the dtype of its results.
RescaleAttributes scaling(Planner& p, int32_t* dtype) {
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  RescaleAttributes a{};
  a.multiplier = custom_int(p, "multiplier", 0, kMost);
  a.left = custom_int(p, "left", 0, 31), a.right = custom_int(p, "right", 0, 31);
  a.up = custom_int(p, "up", 0, 1);
  *dtype = abi_dtype(static_cast<int32_t>(custom_int(p, "dtype", 0, 1 << 10)));
  const bool is_wide = *dtype == MYC_I32, is_signed = *dtype != MYC_U8;
  const int64_t least = is_wide ? kLeast : is_signed ? -128 : 0, most = is_wide ? kMost : is_signed ? 127 : 255;
  a.zero = custom_int(p, "zero", kLeast, kMost);
  a.low = custom_int(p, "low", least, most), a.high = custom_int(p, "high", least, most);
  if (!p.ok()) return a;
  if (*dtype != MYC_I8 && *dtype != MYC_U8 && !is_wide) p.fail(kNotSupported, "other types than int32 and those of 8 bits");
  if (a.low > a.high) p.fail(kOperatorAttribute, "limits without a number between them");
  return a;
}

}  // namespace

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

}  // namespace mycelia::lite
