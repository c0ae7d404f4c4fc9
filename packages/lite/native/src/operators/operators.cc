#include "common.h"

namespace mycelia::lite {

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
