// Stages of a plan: which nodes can be planned now, subgraphs that are called, and what is left for later.
#include <algorithm>
#include <cstring>

#include "delegate.h"
#include "operators/find.h"
#include "schema.h"

namespace mycelia::lite {

namespace {

constexpr int kMostWaits = 32;  // stages in which one node asks for a number: it would ask for ever

}  // namespace

Status Planner::run(int graph, const std::vector<Type>& types) {
  const FileGraph& file = file_.graphs[graph];
  add(Value());  // what `fail` returns: operators may go on with it
  plan_.scopes.resize(1);
  plan_.scopes[0].graph = graph;
  plan_.made = std::vector<bool>(file.outputs.size());
  for (size_t i = 0; i < file.inputs.size(); ++i) {
    Value value;
    value.type = types[i];
    value.outside = true;
    plan_.inputs.push_back(add(std::move(value)));
    plan_.scopes[0].values[file.inputs[i]] = plan_.inputs.back();
    const std::vector<int64_t>& said = file_.tensors[file.inputs[i]].shape;
    for (size_t axis = 0; (!graph || plan_.learns) && said.size() == types[i].shape.size() && axis < said.size(); ++axis)
      plan_.resized = plan_.resized || (said[axis] >= 0 && said[axis] != types[i].shape[axis]);
  }
  std::vector<Item> items;
  for (int i = file.first; i < file.last; ++i) items.push_back({i, 0, false, -1, {}});
  work(std::move(items));
  return finish();
}

bool Planner::was_resized(size_t i) {
  const std::vector<int64_t>& said = file_.tensors[node_->inputs[i]].shape;
  return plan_.resized && !said.empty() && element_count(said) > 0 && said != type(input(i)).shape;
}

Status Planner::finish() {
  node_ = nullptr;
  if (ok()) make_outputs();
  if (!ok()) return status_;
  if (plan_.rest.empty() ? std::find(plan_.made.begin(), plan_.made.end(), false) != plan_.made.end()
                         : plan_.missing.empty() && plan_.activations.empty())
    return {kGraphInvalid, "an output is never made"};
  if (plan_.delegates && !plan_.delegates->empty()) plan_.delegates->front()->offer(*this);
  if (!ok()) return status_;
  if (!plan_.watched && !plan_.portable) join_steps(), join_chains(), write_parts_in_place(), compute_in_place();
  update_in_place();
  place();
  return {};
}

int Planner::value_of_constant(uint32_t index) {
  const auto found = constants_.find(index);
  if (found != constants_.end()) return found->second;
  const FileTensor& tensor = file_.tensors[index];
  const int value = tensor.panels ? unpacked(index) : value_of_bytes(index, {abi_dtype(tensor.dtype), tensor.shape});
  if (tensor.half || tensor.scales) plan_.values[value].type.dtype = MYC_F32, plan_.values[value].stored = &tensor;
  return constants_[index] = value;
}

// A constant as its bytes lie in the file; kernels read whole elements, so that what is not aligned is copied.
int Planner::value_of_bytes(uint32_t index, Type type) {
  const FileTensor& tensor = file_.tensors[index];
  Value value;
  value.type = std::move(type);
  value.constant = tensor.data;
  value.lasting = true;
  if (reinterpret_cast<uintptr_t>(tensor.data) % item_bytes(value.type.dtype)) {
    Pack& copy = (*packs_)[message({"aligned ", index})];
    if (!copy.memory.data()) {
      copy = {value.type, Memory(tensor.bytes)};
      if (!copy.memory.data()) return fail(kMemory, "no memory for the constants");
      std::memcpy(copy.memory.data(), tensor.data, tensor.bytes);
    }
    value.constant = copy.memory.data();
  }
  return add(std::move(value));
}

// -1 while it is not known.
int Planner::value_of(int scope, uint32_t tensor) {
  if (file_.tensors[tensor].data) return value_of_constant(tensor);
  const auto& values = plan_.scopes[scope].values;
  const auto found = values.find(tensor);
  return found == values.end() ? -1 : found->second;
}

bool Planner::is_known(int scope, uint32_t tensor) const {
  return file_.tensors[tensor].data || plan_.scopes[scope].values.count(tensor);
}

bool Planner::ready(const Item& item) {
  for (uint32_t tensor : item.returns ? file_.graphs[plan_.scopes[item.scope].graph].outputs : file_.nodes[item.node].inputs)
    if (!is_known(item.scope, tensor)) return false;
  return true;
}

// Plans what can be planned, in order; the others are left for a later stage.
void Planner::work(std::vector<Item> items) {
  for (Item& item : items) {
    if (!ok()) return;
    if (!ready(item)) {
      plan_.rest.push_back(std::move(item));
    } else if (item.returns) {
      leave(item);
    } else {
      lower(std::move(item));
    }
  }
}

void Planner::lower(Item item) {
  const int scope = item.scope;
  node_ = &file_.nodes[item.node], node_index_ = item.node, scope_ = scope;
  const int first = static_cast<int>(plan_.steps.size());
  if (item.activation >= 0) {
    take_results(item);
  } else {
    emitted_.clear();
    replayed_ = std::move(item.emitted);
    if (!node_->branches.empty()) {
      if (enter(&item)) return;
    } else {
      if (node_->of_integers) integer_operator(*this);
      else find_operator(node_->kind)(*this);
    }
    if (waits_) {
      waits_ = false;
      if (++item.waits > kMostWaits) {
        fail(kError, message({"it asks for a number in each of ", kMostWaits, " stages"}));
        return;
      }
      item.emitted = std::move(emitted_);
      plan_.rest.push_back(std::move(item));
      return;
    }
  }
  for (const Reader* reader : {file_.reader.get(), file_.revealed.reader.get()})
    if (ok() && reader && !reader->ok()) fail(kGraphInvalid, reader->fault());
  for (uint32_t o : node_->outputs)
    if (ok() && !is_known(scope, o)) fail(kNotSupported, message({"its output '", file_.tensors[o].name, "' is not computed"}));
  if (ok() && item.activation < 0) note(first, scope);
}

int Planner::plainly(const std::vector<int>& values) {
  std::unordered_map<uint32_t, int>& known = plan_.scopes[scope_].values;
  std::vector<std::pair<uint32_t, int>> before;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0) continue;
    int& now = known[node_->inputs[i]];
    before.emplace_back(node_->inputs[i], now);
    now = values[i];
  }
  find_operator(node_->kind)(*this);
  const auto made = known.find(node_->outputs.empty() ? 0 : node_->outputs[0]);
  const int result = ok() && made != known.end() ? made->second : 0;
  if (ok()) known.erase(made);
  for (size_t i = before.size(); i-- > 0;) known[before[i].first] = before[i].second;
  return result;
}

// Keeps what the node at work became, for those who watch a run.
void Planner::note(int first, int scope) {
  if (!plan_.watched && !plan_.delegates) return;
  NodeRun run{node_index_, first, static_cast<int>(plan_.steps.size()), {}, {}};
  for (const uint32_t tensor : node_->inputs) {
    const int value = value_of(scope, tensor);
    const bool scaled = value >= 0 && plan_.values[value].stored && plan_.values[value].stored->scales;  // nobody outside knows the scales
    run.inputs.push_back(scaled ? widened(value) : value);
  }
  for (const uint32_t tensor : node_->outputs) run.outputs.push_back(value_of(scope, tensor));
  plan_.nodes.push_back(std::move(run));
}

// Outputs have memory of their own: one that is an input, a constant, a view or another output is copied to it.
void Planner::make_outputs() {
  const std::vector<uint32_t>& tensors = file_.graphs[plan_.scopes[0].graph].outputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (plan_.made[i]) continue;
    const int value = widened(value_of(0, tensors[i]));
    if (value < 0) continue;
    plan_.made[i] = true;
    Value& made = plan_.values[value];
    if (!made.constant && !made.outside && made.root == value) {
      made.outside = true;
      plan_.outputs.emplace_back(i, value);
      continue;
    }
    Value copy;
    copy.type = made.type;
    copy.outside = true;
    const int target = add(std::move(copy));
    plan_.steps.push_back({nullptr, {}, {value}, {target}, -1});
    plan_.outputs.emplace_back(i, target);
  }
  if (plan_.activations.size() == 1 && !plan_.activations[0].loops && plan_.missing.empty()) plan_.tail = is_tail();
}

// Values, or those whose memory they share, that the stages after this one read.
std::vector<int> Planner::readers_of_memory() const {
  std::vector<int> readers(plan_.values.size(), 0);
  for (const Step& step : plan_.steps)
    for (int i : step.inputs)
      if (i >= 0) ++readers[plan_.values[i].root];
  return readers;
}

std::vector<bool> Planner::needed_later() const {
  std::vector<bool> needed(plan_.values.size());
  const auto need = [&](int value) {
    if (value >= 0) needed[plan_.values[value].root] = true;
  };
  for (const Item& item : plan_.rest) {
    const Scope& scope = plan_.scopes[item.scope];
    for (uint32_t tensor : item.returns ? file_.graphs[scope.graph].outputs : file_.nodes[item.node].inputs)
      if (const auto found = scope.values.find(tensor); found != scope.values.end()) need(found->second);
    for (const Emitted& step : item.emitted) {
      for (int i : step.inputs) need(i);
      for (int o : step.outputs) need(o);
    }
  }
  for (int value : plan_.missing) need(value);
  for (const Activation& activation : plan_.activations)
    for (int value : activation.arguments) need(value);
  return needed;
}

}  // namespace mycelia::lite
