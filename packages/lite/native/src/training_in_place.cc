// What a step of a training changes, changed where it lies.
#include <string_view>

#include "plan.h"

namespace mycelia::lite {

namespace {

// Whether the kernel reads the elements of its inputs at a place, and no others of a variable, before it writes its results there.
bool updates(const Step& step) {
  for (const char* op : {"add", "sub", "mul", "div", "adam", "adam_weight_decay", "adamw", "apply_gradient_descent", "apply_momentum", "batch_norm_act_train", "batch_norm_train", "sgd"})
    if (step.op == std::string_view(op)) return true;
  return false;
}

}  // namespace

// Steps that make the next value of a variable write it over the present one, if nobody reads that afterwards: a net is there once, as
// in the framework, not twice. A run that is ended on the way leaves what was updated so far.
void Planner::update_in_place() {
  const FileGraph& graph = file_.graphs[plan_.scopes[0].graph];
  plan_.overwrites.assign(graph.outputs.size(), false);
  if (!plan_.learns || plan_.parallel || plan_.delegates || !plan_.rest.empty() || plan_.inputs.size() != graph.inputs.size()) return;
  const std::vector<Value>& values = plan_.values;
  std::vector<int> maker(values.size(), -1), makers(values.size(), 0), last(values.size(), -1);  // of and by memory
  for (int s = 0; s < static_cast<int>(plan_.steps.size()); ++s) {
    for (const int o : plan_.steps[s].outputs) maker[values[o].root] = s, ++makers[values[o].root];
    for (const int i : plan_.steps[s].inputs)
      if (i >= 0) last[values[i].root] = s;
  }
  std::vector<int> value_of(graph.outputs.size(), -1);
  for (const auto& [output, value] : plan_.outputs) value_of[output] = value;
  size_t output = graph.own_outputs;
  for (size_t i = 0; i < graph.states.size(); ++i) {
    if (!graph.states[i].set) continue;
    const int next = value_of[output], now = plan_.inputs[graph.own_inputs + i];
    if (next >= 0 && values[next].root == next && makers[next] == 1) {
      const Step& step = plan_.steps[maker[next]];
      bool fits = last[now] <= maker[next];
      for (const int in : step.inputs)  // it reads the whole variable, or nothing of it
        if (in >= 0 && values[in].root == now) fits = fits && (!step.kernel || updates(step)) && values[in].type.shape == values[next].type.shape;
      plan_.overwrites[output] = fits;
    }
    ++output;
  }
}

}  // namespace mycelia::lite
