// A Custom node that takes the bytes of a tensor for elements of another type.
#include "custom.h"

namespace mycelia::lite {

using namespace schema;

CUSTOM(bitcast) {  // wider elements take the last axis away, narrower ones add one; of the same width the shape stays
  const int x = p.input(0);
  const Type type = p.type(x);
  const int32_t dtype = abi_dtype(static_cast<int32_t>(custom_int(p, "dtype", 0, 1 << 10)));
  if (!p.ok()) return;
  if (dtype < 0 || dtype == MYC_BOOL) {
    p.fail(kOperatorAttribute, "the dtype of the result is unknown, or bool");
    return;
  }
  const int64_t from = item_bytes(type.dtype), to = item_bytes(dtype);
  Type out{dtype, type.shape};
  if (from > to) {
    out.shape.push_back(from / to);
  } else if (to > from) {
    if (out.shape.empty() || out.shape.back() * from != to) {
      p.fail(kInferFailed, text_of(type) + " has no last axis of one element of the result");
      return;
    }
    out.shape.pop_back();
  }
  p.set_output(0, p.reinterpreted(x, std::move(out)));
}

}  // namespace mycelia::lite
