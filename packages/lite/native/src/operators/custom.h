// Custom nodes: operators that MindSpore Lite's format has no table for. Their type names an op of the framework, their attributes
// are lists of int64 or of float64, little endian.
#ifndef MYCELIA_LITE_OPERATORS_CUSTOM_H_
#define MYCELIA_LITE_OPERATORS_CUSTOM_H_

#include <string>
#include <vector>

#include "common.h"

namespace mycelia::lite {

// Defines a Custom operator of custom.def.
#define CUSTOM(type) void lower_custom_##type(Planner& p)

#define LITE_CUSTOM(type) CUSTOM(type);
#include "custom.def"
#undef LITE_CUSTOM

// The attributes of the node at work; reading one that is missing or of another length is a fault of the planning.
std::vector<int64_t> custom_ints(Planner& p, const char* name);
// The same with `count` numbers, each from `least` to `most`.
std::vector<int64_t> custom_ints(Planner& p, const char* name, size_t count, int64_t least, int64_t most);
int64_t custom_int(Planner& p, const char* name, int64_t least, int64_t most);
double custom_real(Planner& p, const char* name);
std::string custom_text(Planner& p, const char* name);  // empty where there is none

constexpr int64_t kMostSize = int64_t{1} << 40;  // of sizes, strides and the like in attributes

// Lowers what `type` names among ops of training; false if it is none (custom_training.cc).
bool lower_training(Planner& p, const std::string& type);

// Lowers what `type` names among ops without attributes that work element by element; false if it is none.
bool lower_elementwise(Planner& p, const std::string& type);

}  // namespace mycelia::lite

#endif
