// The table of operators: a program that has another one links no other operators.
#include "find.h"
#include "schema.h"

namespace mycelia::lite {

#define LITE_OPERATOR(kind) void lower_##kind(Planner&);
#include "operators.def"
#undef LITE_OPERATOR

Operator find_operator(uint8_t kind) {
  switch (kind) {
#define LITE_OPERATOR(kind) \
  case schema::kOp_##kind: return lower_##kind;
#include "operators.def"
#undef LITE_OPERATOR
    default: return nullptr;
  }
}

}  // namespace mycelia::lite
