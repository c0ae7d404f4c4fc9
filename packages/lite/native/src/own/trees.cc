// Forests of decision trees.
#include <algorithm>
#include <vector>

#include "own.h"

namespace mycelia::lite {

namespace {

// Whether an element goes on to the first of a node's two: comparisons 0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=; with 8 added also NaN does.
bool holds(float x, float threshold, int32_t how) {
  if (x != x) return how & 8;
  switch (how & 7) {
    case 0: return x <= threshold;
    case 1: return x < threshold;
    case 2: return x >= threshold;
    case 3: return x > threshold;
    case 4: return x == threshold;
    default: return x != threshold;
  }
}

}  // namespace

// x [N, F]; nodes [n, 4] (feature, the node if the comparison holds, the one if not, which comparison; of a leaf -1 and its row), thresholds [n],
// roots [T], leaves [L, K]: sums [N, K] of the leaves of all trees, or their means, least or largest.  The planner has checked the places.
int32_t own_trees_f32(const myc_call* call) {
  const TreesAttributes& a = attrs<TreesAttributes>(call);
  const int64_t features = call->in[0]->shape[1], trees = call->in[3]->size, targets = call->in[4]->shape[1];
  const int32_t *nodes = in<int32_t>(call, 1), *roots = in<int32_t>(call, 3);
  const float *thresholds = in<float>(call, 2), *leaves = in<float>(call, 4);
  for_each(call, call->in[0]->shape[0], 1 + 4096 / (trees + 1), [&](int64_t row) {
    const float* x = in<float>(call, 0) + row * features;
    float* y = out<float>(call) + row * targets;
    std::fill(y, y + targets, 0.0f);
    for (int64_t t = 0; t < trees; ++t) {
      int32_t at = roots[t];
      while (nodes[4 * at] >= 0) at = nodes[4 * at + (holds(x[nodes[4 * at]], thresholds[at], nodes[4 * at + 3]) ? 1 : 2)];
      const float* leaf = leaves + nodes[4 * at + 1] * targets;
      for (int64_t k = 0; k < targets; ++k)
        y[k] = t == 0 ? leaf[k] : a.how == 2 ? std::min(y[k], leaf[k]) : a.how == 3 ? std::max(y[k], leaf[k]) : y[k] + leaf[k];
    }
    for (int64_t k = 0; a.how == 1 && k < targets; ++k) y[k] /= static_cast<float>(trees);
  });
  return MYC_OK;
}

}  // namespace mycelia::lite
