// What operators of several families share.
#ifndef MYCELIA_LITE_OPERATORS_COMMON_H_
#define MYCELIA_LITE_OPERATORS_COMMON_H_

#include <initializer_list>

#include "../plan.h"
#include "../schema.h"
#include "mycelia/op_attrs.h"

namespace mycelia::lite {

// Defines an operator of operators.def: it reads the node's attributes, infers shapes and emits kernels.
#define OPERATOR(kind) void lower_##kind(Planner& p)

#define LITE_OPERATOR(kind) OPERATOR(kind);
#include "operators.def"
#undef LITE_OPERATOR

inline myc_ints ints(std::initializer_list<int64_t> values) {
  myc_ints made{};
  for (int64_t v : values) made.v[made.n++] = v;
  return made;
}

// The axis counted from the front; fails if there is none.
int axis_of(Planner& p, int64_t axis, int rank);

// Fails unless `bias` is absent or has `channels` elements.
void check_bias(Planner& p, int bias, int64_t channels);

// The value after an activation without further attributes.
int activated(Planner& p, int value, int8_t activation);

// The activation as the attribute `activation` of kernels on packed weights; -1 if they do not have it.
int64_t fused_activation(int8_t activation);

}  // namespace mycelia::lite

#endif
