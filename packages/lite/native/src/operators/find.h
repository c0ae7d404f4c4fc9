// Which operators there are.
#ifndef MYCELIA_LITE_OPERATORS_FIND_H_
#define MYCELIA_LITE_OPERATORS_FIND_H_

#include <cstdint>

namespace mycelia::lite {

class Planner;

// What lowers an operator of the file, by the tag of its primitive; null if this runtime does not have it.
using Operator = void (*)(Planner&);
Operator find_operator(uint8_t kind);

}  // namespace mycelia::lite

#endif
