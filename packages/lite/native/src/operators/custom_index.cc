// Custom nodes that write at named places, order elements or keep triangles.
#include <algorithm>

#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kReductions = 7;

}  // namespace

CUSTOM(tensor_scatter) {
  const int64_t reduction = custom_int(p, "reduction", 0, kReductions - 1);
  p.set_output(0, scattered(p, p.input(0), p.input(1), p.input(2), reduction));
}

CUSTOM(scatter_elements) {
  const int64_t reduction = custom_int(p, "reduction", 0, kReductions - 1), axis = custom_int(p, "axis", -MYC_MAX_RANK, MYC_MAX_RANK);
  p.set_output(0, scattered_along(p, p.input(0), p.input(1), p.input(2), axis, reduction));
}

CUSTOM(sort) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int64_t descending = custom_int(p, "descending", 0, 1);
  const int axis = axis_of(p, custom_int(p, "axis", -MYC_MAX_RANK, MYC_MAX_RANK), type.rank());
  const std::vector<int> made = p.emit_all("sort", {x}, myc_sort_attrs{axis, descending}, {type, Type{MYC_I32, type.shape}});
  for (size_t i = 0; i < std::min<size_t>(2, p.node().outputs.size()); ++i) p.set_output(i, made[i]);
}

CUSTOM(cumprod) {
  const int x = p.input(0);
  const Type type = p.type(x);
  const int axis = axis_of(p, custom_int(p, "axis", -MYC_MAX_RANK, MYC_MAX_RANK), type.rank());
  p.set_output(0, p.emit("cumprod", {x}, myc_cumprod_attrs{axis}, type));
}

CUSTOM(tril) { p.set_output(0, triangle(p, "tril", p.input(0), custom_int(p, "diagonal", -kMostSize, kMostSize))); }
CUSTOM(triu) { p.set_output(0, triangle(p, "triu", p.input(0), custom_int(p, "diagonal", -kMostSize, kMostSize))); }

CUSTOM(det) {
  const int x = p.input(0);
  const Type type = p.type(x);
  if (type.rank() < 2 || type.shape.back() != type.shape[type.shape.size() - 2]) {
    p.fail(kInferFailed, text_of(type) + " is no square matrix");
    return;
  }
  p.set_output(0, p.emit("det", {x}, Type{type.dtype, {type.shape.begin(), type.shape.end() - 2}}));
}

}  // namespace mycelia::lite
