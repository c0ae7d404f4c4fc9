#include "memory_plan.h"

#include <algorithm>

namespace mycelia::lite {

std::string memory_plan(const Plan& plan, const std::vector<FileNode>& nodes) {
  std::string text;
  std::vector<int> first(plan.values.size(), -1), last(plan.values.size(), -1);
  for (int s = 0; s < static_cast<int>(plan.steps.size()); ++s) {
    const Step& step = plan.steps[s];
    text += std::string("step\t") + (step.kernel ? step.op : "copy") + "\t";
    if (step.node >= 0) text.append(nodes[step.node].name).append("\t").append(name_of_operator(nodes[step.node].kind));
    else text += "\t";
    text += "\n";
    const auto used = [&](int value) {
      if (value < 0) return;
      const int root = plan.values[value].root;
      if (first[root] < 0) first[root] = s;
      last[root] = s;
    };
    for (const int i : step.inputs) used(i);
    for (const int o : step.outputs) used(o);
  }
  for (const NodeRun& node : plan.nodes)
    for (const std::vector<int>* values : {&node.inputs, &node.outputs})
      for (const int v : *values)
        if (v >= 0 && first[plan.values[v].root] >= 0) last[plan.values[v].root] = std::max(last[plan.values[v].root], node.last - 1);
  for (size_t i = 0; i < plan.values.size(); ++i) {
    const Value& value = plan.values[i];
    if (value.place < 0 || first[i] < 0) continue;
    const int64_t bytes = element_count(value.type.shape) * item_bytes(value.type.dtype);
    text += "value";
    for (const int64_t number : {value.place, bytes, static_cast<int64_t>(first[i]), static_cast<int64_t>(last[i])})
      text += "\t" + std::to_string(number);
    text += "\t" + text_of(value.type) + "\n";
  }
  return text;
}

}  // namespace mycelia::lite
