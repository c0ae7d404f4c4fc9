// Custom nodes on integers of 8 bits with a scale, as TensorFlow Lite's kernels compute with them.
#include <limits>

#include "../own/own.h"
#include "custom.h"

namespace mycelia::lite {

using namespace schema;

CUSTOM(lookup) {  // for each integer of 8 bits the element of a table of 256 in its place
  const int x = p.input(0), table = p.input(1);
  if (!p.ok()) return;
  const Type type = p.type(x), rows = p.type(table);
  if (type.dtype != MYC_I8 && type.dtype != MYC_U8) p.fail(kNotSupported, "places " + text_of(type) + " in a table of 256 elements");
  if (rows.shape != std::vector<int64_t>{256} || (rows.dtype != MYC_I8 && rows.dtype != MYC_U8 && rows.dtype != MYC_I32))
    p.fail(kNotSupported, "a table " + text_of(rows));
  if (p.ok()) p.set_output(0, p.emit("lookup", {x, table}, LookupAttributes{type.dtype == MYC_I8 ? 128 : 0}, Type{rows.dtype, type.shape}));
}

CUSTOM(rescale) {  // integers times a real number, as a multiplier and shifts, plus a zero point, within limits
  const int x = p.input(0);
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min(), kMost = std::numeric_limits<int32_t>::max();
  RescaleAttributes a{};
  a.multiplier = custom_int(p, "multiplier", 0, kMost);
  a.left = custom_int(p, "left", 0, 31), a.right = custom_int(p, "right", 0, 31);
  a.up = custom_int(p, "up", 0, 1);
  const int32_t dtype = abi_dtype(static_cast<int32_t>(custom_int(p, "dtype", 0, 1 << 10)));
  const bool is_signed = dtype != MYC_U8, is_wide = dtype == MYC_I32;
  const int64_t least = is_wide ? kLeast : is_signed ? -128 : 0, most = is_wide ? kMost : is_signed ? 127 : 255;
  a.zero = custom_int(p, "zero", kLeast, kMost);
  a.low = custom_int(p, "low", least, most), a.high = custom_int(p, "high", least, most);
  if (!p.ok()) return;
  if (p.type(x).dtype != MYC_I32 || (dtype != MYC_I8 && dtype != MYC_U8 && dtype != MYC_I32)) p.fail(kNotSupported, "other types than int32 and those of 8 bits");
  if (a.low > a.high) p.fail(kOperatorAttribute, "limits without a number between them");
  if (p.ok()) p.set_output(0, p.emit("rescale", {x}, a, Type{dtype, p.type(x).shape}));
}

}  // namespace mycelia::lite
