// A plan in words: its steps, and where its values lie for how long.
#ifndef MYCELIA_LITE_MEMORY_PLAN_H_
#define MYCELIA_LITE_MEMORY_PLAN_H_

#include <string>
#include <vector>

#include "plan.h"

namespace mycelia::lite {

// Lines of fields with tabs between: "step", its kernel, name and type of its node; "value", its place in the arena, its bytes,
// the first and the last step that use it, its type.
std::string memory_plan(const Plan& plan, const std::vector<FileNode>& nodes);

}  // namespace mycelia::lite

#endif
