#include "execution.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "mycelia/cpu.h"
#include "schema.h"

namespace mycelia::lite {

Status no_memory() { return {kMemory, "no memory for the tensors of these shapes"}; }

std::string node_text(const FileNode& node) { return message({"node '", node.name, "' (", name_of_operator(node.kind), "): "}); }

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostStages = 64;  // plans that are kept
}  // namespace

// ---- plans ---------------------------------------------------------------------------------------------------------

Status Execution::find(const std::string& key, const std::function<Status(Stage*)>& make, std::shared_ptr<Stage>* stage) {
  const auto found = std::find_if(stages_.begin(), stages_.end(), [&](const auto& kept) { return kept.first == key; });
  if (found != stages_.end() && !found->second->active) {
    stages_.splice(stages_.begin(), stages_, found);
    *stage = found->second;
    return {};
  }
  auto made = std::make_shared<Stage>();
  made->number = ++made_;
  made->plan.fast = fast_;
  made->plan.watched = watched_;
  made->plan.learns = file_.training.there;
  made->plan.delegates = delegates_.empty() ? nullptr : &delegates_;
  made->plan.parallel = watched_ ? nullptr : lanes_.get();
  {
    const Planning planning(source_);
    if (!planning) return planned_already();
    if (Status status = make(made.get()); !status) return status;
  }
  if (found == stages_.end()) {
    stages_.emplace_front(key, made);
    if (stages_.size() > kMostStages) stages_.pop_back();
  }
  *stage = std::move(made);
  return {};
}

Status Execution::first_stage(int graph, const std::vector<Type>& types, std::shared_ptr<Stage>* stage) {
  std::string key = message({watched_ ? "watched " : "graph ", graph});
  for (const Type& type : types) key += message({" ", text_of(type)});
  return find(key, [&](Stage* made) { return Planner(file_, &source_.packs, &source_.pool, &made->plan).run(graph, types); }, stage);
}

Status Execution::prepare(const std::vector<Type>& types, std::shared_ptr<Stage>* stage) { return first_stage(graph_, types, stage); }

// ---- addresses -----------------------------------------------------------------------------------------------------

Status Execution::bind(const std::shared_ptr<Stage>& stage, const std::vector<Argument>& inputs, const Sink& sink) {
  Status status = bind(*stage, 0, inputs, {}, sink);
  if (status) bound_ = stage->number, moves_ = workspace_.moves();
  return status;
}

Status Execution::bind(Stage& stage, size_t level, const std::vector<Argument>& inputs, const Results& results, const Sink& sink) {
  const Plan& plan = stage.plan;
  if (level == 0 || stage.number == bound_) bound_ = 0;
  uint8_t* const arena = workspace_.arena(level, static_cast<size_t>(plan.arena_bytes));
  if (!arena) return no_memory();
  std::vector<myc_tensor>& tensors = stage.tensors;
  if (tensors.size() != plan.values.size()) {  // what is the same for all runs
    tensors.assign(plan.values.size(), myc_tensor{});
    for (size_t i = 0; i < plan.values.size(); ++i) {
      const Type& type = plan.values[i].type;
      tensors[i].dtype = type.dtype;
      tensors[i].rank = type.rank();
      tensors[i].size = element_count(type.shape);
      std::copy(type.shape.begin(), type.shape.end(), tensors[i].shape);
      tensors[i].data = const_cast<uint8_t*>(plan.values[i].constant);
    }
    if (plan.parallel) stage.order = plan.parallel->order_of(plan);
    for (const Step& step : plan.steps) {
      stage.step_places.emplace_back(stage.step_inputs.size(), stage.step_outputs.size());
      for (const int i : step.inputs) stage.step_inputs.push_back(i < 0 ? nullptr : &tensors[i]);
      for (const int o : step.outputs) stage.step_outputs.push_back(&tensors[o]);
    }
  }
  for (size_t i = 0; i < plan.inputs.size(); ++i) tensors[plan.inputs[i]].data = const_cast<uint8_t*>(inputs[i].data);
  for (const auto& [value, old] : plan.imported) tensors[value].data = stage.before->tensors[old].data;
  for (const Plan::Result& result : plan.results)
    tensors[result.value].data = results[result.activation][result.index].memory.data();
  for (const auto& [output, value] : plan.outputs) {
    tensors[value].data = sink(output, plan.values[value].type);
    if (!tensors[value].data) return no_memory();
  }
  for (size_t i = 0; i < plan.values.size(); ++i) {
    const Value& value = plan.values[i];
    if (value.place >= 0) tensors[i].data = arena + value.place;
    else if (value.root != static_cast<int>(i) && !value.constant) tensors[i].data = nullptr;
  }
  for (size_t i = 0; i < plan.values.size(); ++i)
    if (const Value& view = plan.values[i]; !tensors[i].data) tensors[i].data = static_cast<uint8_t*>(tensors[view.root].data) + view.offset;
  return {};
}

// ---- running -------------------------------------------------------------------------------------------------------

Status Execution::run_steps(const Stage& stage) {
  if (observer_) return run_observed(stage);
  if (stage.plan.parallel && !times_) return run_lanes(stage);
  return run_steps(stage, 0, static_cast<int>(stage.plan.steps.size()), myc_cpu_context());
}

Status Execution::run_steps(const Stage& stage, int first, int last, myc_context* context) {
  for (int s = first; s < last; ++s) {
    const auto begin = times_ ? Clock::now() : Clock::time_point();
    if (Status status = run_step(stage, s, context); !status) return status;
    const int node = stage.plan.steps[s].node;
    if (!times_ || node < 0) continue;
    times_->milliseconds[node] += std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    times_->calls[node] += s + 1 == last || stage.plan.steps[s + 1].node != node;
  }
  return {};
}

Status Execution::run_lanes(const Stage& stage) {
  return lanes_->run(stage.order, [&](int s) { return run_step(stage, s, myc_cpu_context()); });
}

Status Execution::run_step(const Stage& stage, int s, myc_context* context) {
  const Step& step = stage.plan.steps[s];
  const myc_tensor* const* in = stage.step_inputs.data() + stage.step_places[s].first;
  myc_tensor* const* out = stage.step_outputs.data() + stage.step_places[s].second;
  if (!step.kernel) {
    if (out[0]->data != in[0]->data) std::memcpy(out[0]->data, in[0]->data, static_cast<size_t>(in[0]->size * item_bytes(in[0]->dtype)));
    return {};
  }
  const myc_call call{in, out, step.attributes.data(), context, static_cast<int32_t>(step.inputs.size()),
                      static_cast<int32_t>(step.outputs.size())};
  const int32_t code = step.kernel(&call);
  if (code == MYC_OK) return {};
  const char* reason = code == MYC_E_ARGUMENT ? context->error : code == MYC_E_MEMORY ? "no memory for scratch" : "its kernel does not take this case";
  return {kOperatorFailed, node_text(file_.nodes[step.node]) + reason};
}

Status Execution::run_observed(const Stage& stage) {
  myc_context* const context = myc_cpu_context();
  const auto describe = [&stage](int value) -> const myc_tensor* { return value < 0 ? nullptr : &stage.tensors[value]; };
  int next = 0;
  for (const NodeRun& node : stage.plan.nodes) {
    const FileNode& about = file_.nodes[node.node];
    // What stands between nodes: the beginnings of those that wait for a number.
    if (Status status = run_steps(stage, next, node.first, context); !status) return status;
    if (!observer_->before(about, node, describe)) return {kError, message({"the callback before node '", about.name, "' ended the run"})};
    if (Status status = run_steps(stage, node.first, node.last, context); !status) return status;
    if (!observer_->after(about, node, describe)) return {kError, message({"the callback after node '", about.name, "' ended the run"})};
    next = node.last;
  }
  return run_steps(stage, next, static_cast<int>(stage.plan.steps.size()), context);  // copies to outputs
}

Status Execution::run(const std::shared_ptr<Stage>& first, const Sink& sink, Observer* observer, NodeTimes* times) {
  observer_ = observer;
  times_ = times;
  return finish(first, 0, 0, sink);
}

Status Execution::finish(std::shared_ptr<Stage> stage, size_t level, int depth, const Sink& sink) {
  if (!stage->plan.rest.empty()) return run_stages(std::move(stage), level, depth, sink);
  struct Active {  // the only stage: small models notice what more costs
    Stage& stage;
    explicit Active(Stage& given) : stage(given) { stage.active = true; }
    ~Active() { stage.active = false; }
  } active(*stage);
  return run_steps(*stage);
}

}  // namespace mycelia::lite
