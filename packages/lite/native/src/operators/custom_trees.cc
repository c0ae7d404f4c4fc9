// Forests of decision trees: the places in them are checked once, here.
#include "../own/own.h"
#include "custom.h"

namespace mycelia::lite {

using namespace schema;

CUSTOM(trees) {  // x [N, F], nodes [n, 4], thresholds [n], roots [T], leaves [L, K] (own/trees.cc)
  const int x = p.input(0), nodes = p.input(1), thresholds = p.input(2), roots = p.input(3), leaves = p.input(4);
  const TreesAttributes attributes{custom_int(p, "how", 0, 3)};
  if (!p.ok()) return;
  const Type data = p.type(x), n = p.type(nodes), l = p.type(leaves), r = p.type(roots);
  const int64_t count = n.rank() == 2 ? n.shape[0] : 0;
  const bool fits = data.dtype == MYC_F32 && data.rank() == 2 && n.dtype == MYC_I32 && n.rank() == 2 && n.shape[1] == 4 && l.dtype == MYC_F32 &&
                    l.rank() == 2 && r.dtype == MYC_I32 && r.rank() == 1 && p.type(thresholds).dtype == MYC_F32 &&
                    p.type(thresholds).shape == std::vector<int64_t>{count} && p.constant(nodes) && p.constant(roots);
  if (!fits) {
    p.fail(kNotSupported, message({"trees of nodes ", text_of(n), " with leaves ", text_of(l), " for ", text_of(data)}));
    return;
  }
  const auto* const node = reinterpret_cast<const int32_t*>(p.constant(nodes));
  const auto* const root = reinterpret_cast<const int32_t*>(p.constant(roots));
  const auto within = [](int64_t i, int64_t least, int64_t most) { return i >= least && i < most; };
  bool sound = true;
  for (int64_t i = 0; i < r.shape[0]; ++i) sound = sound && within(root[i], 0, count);
  for (int64_t i = 0; i < count; ++i) {  // nodes behind their parents: no path is endless
    const int32_t* one = node + 4 * i;
    sound = sound && (one[0] < 0 ? within(one[1], 0, l.shape[0])
                                 : within(one[0], 0, data.shape[1]) && within(one[1], i + 1, count) && within(one[2], i + 1, count));
  }
  if (!sound) p.fail(kOperatorAttribute, "trees that lead out of their nodes, leaves or features");
  if (p.ok()) p.set_output(0, p.emit("trees", {x, nodes, thresholds, roots, leaves}, attributes, Type{MYC_F32, {data.shape[0], l.shape[1]}}));
}

}  // namespace mycelia::lite
