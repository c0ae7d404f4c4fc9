// What needs more than one stage: subgraphs that are called, loops, and numbers that follow from data.
#include <algorithm>

#include "plan.h"

namespace mycelia::lite {

namespace {

constexpr int64_t kMostEntered = int64_t{1} << 20;  // nodes of called subgraphs in one plan: a damaged file may double them at every call
constexpr int kDeepest = 100;  // calls within calls

}  // namespace

Status Planner::resume(const Plan& before, const std::vector<const uint8_t*>& numbers, const std::vector<std::vector<Type>>& results) {
  add(Value());
  for (size_t i = 0; i < numbers.size(); ++i) numbers_[before.missing[i]] = numbers[i];
  results_ = results;
  plan_.made = before.made;
  plan_.resized = before.resized;
  for (const Scope& scope : before.scopes) plan_.scopes.push_back({scope.graph, scope.caller, scope.node, {}});
  std::vector<Item> items = before.rest;
  for (Item& item : items) {
    const Scope& scope = before.scopes[item.scope];
    for (uint32_t tensor : item.returns ? file_.graphs[scope.graph].outputs : file_.nodes[item.node].inputs)
      if (const auto found = scope.values.find(tensor); found != scope.values.end())
        plan_.scopes[item.scope].values[tensor] = imported(before, found->second);
    for (Emitted& step : item.emitted) {
      for (int& i : step.inputs) i = i < 0 ? i : imported(before, i);
      for (int& o : step.outputs) o = imported(before, o);
    }
  }
  if (ok()) work(std::move(items));
  return finish();
}

// A value of the stage before as one of ours.
int Planner::imported(const Plan& before, int value) {
  const auto [found, fresh] = imports_.emplace(value, 0);
  if (!fresh) return found->second;
  const Value& old = before.values[value];
  if (const auto number = numbers_.find(value); number != numbers_.end() && !old.constant) {
    found->second = made_constant(old.type, number->second, false);
    return imports_[value];
  }
  Value made;
  made.type = old.type;
  made.constant = old.constant;
  made.stored = old.stored;
  made.lasting = old.lasting;
  made.outside = !old.constant;
  const int ours = imports_[value] = add(std::move(made));
  if (!old.constant) plan_.imported.emplace_back(ours, value);
  return ours;
}

// Enters the subgraph that the node at work calls; false if it waits for a condition, or failed.
bool Planner::enter(Item* item) {
  if (node_->loops) return loop(std::move(*item)), true;
  int taken = 0;
  if (node_->by_number || node_->branches.size() == 2) {
    const std::vector<int64_t> condition = integers(input(0), node_->by_number ? "the number of the branch" : "the condition");
    const int64_t count = static_cast<int64_t>(node_->branches.size());
    if (ok() && condition.size() != 1) fail(kOperatorAttribute, "the condition is " + text_of(type(input(0))));
    if (ok() && node_->by_number && (condition[0] < -count || condition[0] >= count))
      fail(kOperatorAttribute, message({"branch ", condition[0], " of ", count}));
    if (ok()) taken = static_cast<int>(!node_->by_number ? !condition[0] : condition[0] + (condition[0] < 0 ? count : 0));
  }
  if (!ok()) return false;
  call(std::move(*item), taken);
  return true;
}

// Whether a subgraph is under way in this scope or those that called it.
bool Planner::runs(int graph, int scope) const {
  for (int depth = 0; scope >= 0; scope = plan_.scopes[scope].caller, ++depth)
    if (plan_.scopes[scope].graph == graph || depth > kDeepest) return true;
  return false;
}

// The nodes of a subgraph become part of this plan, unless it would never end: one that calls itself runs on its own.
void Planner::call(Item item, int taken) {
  const FileBranch& branch = node_->branches[taken];
  const FileGraph& graph = file_.graphs[branch.graph];
  std::vector<int> arguments;
  for (uint32_t tensor : branch.inputs) arguments.push_back(value_of(scope_, tensor));
  const bool own = graph.cycle >= 0 && graph.cycle != file_.graphs[plan_.scopes[0].graph].cycle;
  if (own || runs(branch.graph, scope_)) {
    activate(std::move(item), {branch.graph, widened(std::move(arguments)), item.node, false, 0});
    return;
  }
  entered_ += graph.last - graph.first + 1;
  if (entered_ > kMostEntered) {
    fail(kGraphInvalid, "subgraphs that call one another make more than " + std::to_string(kMostEntered) + " nodes");
    return;
  }
  const int scope = static_cast<int>(plan_.scopes.size());
  plan_.scopes.push_back({branch.graph, item.scope, item.node, {}});
  for (size_t i = 0; i < arguments.size(); ++i) plan_.scopes[scope].values[graph.inputs[i]] = arguments[i];
  std::vector<Item> items;
  for (int i = graph.first; i < graph.last; ++i) items.push_back({i, scope, false, -1, {}});
  items.push_back({item.node, scope, true, -1, {}});
  work(std::move(items));
}

// The outputs of a subgraph become those of the node that called it.
void Planner::leave(const Item& item) {
  const Scope scope = plan_.scopes[item.scope];
  const std::vector<uint32_t>& outputs = file_.nodes[scope.node].outputs;
  for (size_t i = 0; i < outputs.size(); ++i)
    plan_.scopes[scope.caller].values[outputs[i]] = value_of(item.scope, file_.graphs[scope.graph].outputs[i]);
}

void Planner::loop(Item item) {
  Activation activation{node_->branches[0].graph, {}, item.node, true, node_->carried};
  for (size_t i = 0; i < node_->inputs.size(); ++i) activation.arguments.push_back(widened(input(i)));
  activate(std::move(item), std::move(activation));
}

void Planner::activate(Item item, Activation activation) {
  item.activation = static_cast<int>(plan_.activations.size());
  plan_.activations.push_back(std::move(activation));
  plan_.rest.push_back(std::move(item));
}

void Planner::take_results(const Item& item) {
  const std::vector<Type>& types = results_[item.activation];
  for (size_t i = 0; i < node_->outputs.size() && i < types.size(); ++i) {
    Value value;
    value.type = types[i];
    value.outside = true;
    plan_.results.push_back({add(std::move(value)), item.activation, static_cast<int>(i)});
    set_output(i, plan_.results.back().value);
  }
}

// Whether all that is left is the call of a subgraph whose results are those of this one.
bool Planner::is_tail() const {
  int calls = 0;
  for (const Item& item : plan_.rest) calls += !item.returns;
  const std::vector<uint32_t>& tensors = file_.graphs[plan_.scopes[0].graph].outputs;
  const Item* call = nullptr;
  for (const Item& item : plan_.rest)
    if (item.activation >= 0) call = &item;
  if (calls != 1 || !call || plan_.made != std::vector<bool>(tensors.size(), false)) return false;
  const std::vector<uint32_t>& results = file_.nodes[call->node].outputs;
  if (results.size() != tensors.size() || file_.graphs[plan_.activations[0].graph].outputs.size() != results.size()) return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    uint32_t tensor = results[i];
    for (int scope = call->scope; scope > 0; scope = plan_.scopes[scope].caller) {  // what becomes of it on the way out
      const std::vector<uint32_t>& inner = file_.graphs[plan_.scopes[scope].graph].outputs;
      const std::vector<uint32_t>& outer = file_.nodes[plan_.scopes[scope].node].outputs;
      const size_t at = static_cast<size_t>(std::find(inner.begin(), inner.end(), tensor) - inner.begin());
      if (at >= outer.size()) return false;
      tensor = outer[at];
    }
    if (tensor != tensors[i]) return false;
  }
  return true;
}

}  // namespace mycelia::lite
