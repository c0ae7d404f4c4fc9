// Custom nodes that work element by element and have no attributes: the kernel has the name of the type.
#include "custom.h"

namespace mycelia::lite {

using namespace schema;

namespace {

struct Elementwise {
  const char* op;
  int inputs;
  bool truth;  // the results are bool
};

const Elementwise kElementwise[] = {
    {"acos", 1, false},        {"acosh", 1, false},        {"asin", 1, false},
    {"asinh", 1, false},       {"atan", 1, false},         {"atanh", 1, false},
    {"bitwise_and", 2, false}, {"bitwise_or", 2, false},   {"bitwise_xor", 2, false},
    {"cosh", 1, false},        {"expm1", 1, false},        {"bitwise_left_shift", 2, false},
    {"invert", 1, false},      {"isfinite", 1, true},      {"bitwise_right_shift", 2, false},
    {"isinf", 1, true},        {"isnan", 1, true},         {"sign", 1, false},
    {"sinh", 1, false},        {"tan", 1, false},          {"truncate_div", 2, false},
    {"trunc", 1, false},       {"truncate_mod", 2, false}, {"atan2", 2, false},
};

}  // namespace

bool lower_elementwise(Planner& p, const std::string& type) {
  for (const Elementwise& e : kElementwise) {
    if (type != e.op) continue;
    const int a = p.input(0), b = e.inputs == 2 ? p.input(1) : a;
    Type out = broadcast(p, p.type(a), p.type(b));
    if (e.truth) out.dtype = MYC_BOOL;
    p.set_output(0, p.emit(e.op, e.inputs == 2 ? std::vector<int>{a, b} : std::vector<int>{a}, out));
    return true;
  }
  return false;
}

}  // namespace mycelia::lite
