// Steps that write over what they read: a half of the memory at work, which small models have in the first-level cache.
#include <string_view>

#include "plan.h"

namespace mycelia::lite {

namespace {

// Whether the kernel reads an element before it writes the one in its place, and may do so twice.
bool writes_over(const Step& step) { return step.op == std::string_view("relu") || step.op == std::string_view("relu6"); }

}  // namespace

void Planner::compute_in_place() {
  if (plan_.delegates) return;  // which may read what the nodes around theirs made
  std::vector<Value>& values = plan_.values;
  const std::vector<bool> kept = needed_later();
  std::vector<int> readers = readers_of_memory();
  std::vector<bool> made(values.size(), false);  // memory of this stage
  for (const Step& step : plan_.steps) {
    const auto own = [&](int root) { return made[root] && !values[root].outside && !kept[root]; };
    for (const int o : step.outputs) made[values[o].root] = true;
    if (!writes_over(step)) continue;
    const int root = values[step.inputs[0]].root, over = step.outputs[0];
    if (!own(root) || readers[root] != 1 || values[over].root != over || !own(over)) continue;
    const int64_t offset = values[step.inputs[0]].offset;
    for (Value& each : values)
      if (each.root == over) each.root = root, each.offset += offset;
    readers[root] = readers[over];
  }
}

}  // namespace mycelia::lite
