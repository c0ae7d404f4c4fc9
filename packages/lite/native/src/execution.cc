#include "execution.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "mycelia/cpu.h"
#include "schema.h"

namespace mycelia::lite {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostStages = 64;  // plans that are kept
constexpr int kDeepest = 64;  // calls within calls that run on their own

size_t bytes_of(const Type& type) { return static_cast<size_t>(element_count(type.shape) * item_bytes(type.dtype)); }

std::string node_text(const FileNode& node) { return "node '" + std::string(node.name) + "' (" + name_of_operator(node.kind) + "): "; }

Type type_of(const myc_tensor& t) { return {t.dtype, {t.shape, t.shape + t.rank}}; }

Execution::Argument argument_of(const myc_tensor& t) { return {type_of(t), static_cast<const uint8_t*>(t.data)}; }

Status no_memory() { return {kMemory, "no memory for the tensors of these shapes"}; }

Status copied(const Type& type, const void* data, Buffer* buffer) {
  *buffer = {type, Memory(bytes_of(type))};
  if (!buffer->memory.data()) return no_memory();
  std::memcpy(buffer->memory.data(), data, bytes_of(type));
  return {};
}

// Slices of equal type, one after the other.
struct Stacked {
  Type type;
  int64_t count = 0;
  Memory memory;

  Status add(const Buffer& slice) {
    if (!count) type = slice.type;
    if (slice.type.dtype != type.dtype || slice.type.shape != type.shape)
      return {kInferFailed, "a run of the loop gives " + text_of(slice.type) + ", those before gave " + text_of(type)};
    const size_t bytes = bytes_of(type), used = static_cast<size_t>(count) * bytes;
    if (used + bytes > memory.size() || !memory.data()) {
      Memory grown(std::max<size_t>(2 * used, used + bytes));
      if (!grown.data()) return no_memory();
      if (used) std::memcpy(grown.data(), memory.data(), used);
      memory = std::move(grown);
    }
    std::memcpy(memory.data() + used, slice.memory.data(), bytes);
    ++count;
    return {};
  }
};

}  // namespace

// ---- plans ---------------------------------------------------------------------------------------------------------

Status Execution::find(const std::string& key, const std::function<Status(Stage*)>& make, std::shared_ptr<Stage>* stage) {
  const auto found = by_key_.find(key);
  if (found != by_key_.end() && !found->second->second->active) {
    stages_.splice(stages_.begin(), stages_, found->second);
    *stage = found->second->second;
    return {};
  }
  auto made = std::make_shared<Stage>();
  made->number = ++made_;
  made->plan.watched = watched_;
  made->plan.delegates = delegates_.empty() ? nullptr : &delegates_;
  made->plan.parallel = lanes_ != nullptr && !watched_;
  {
    const Planning planning(source_);
    if (!planning) return planned_already();
    if (Status status = make(made.get()); !status) return status;
  }
  if (found != by_key_.end()) {
    *stage = std::move(made);
    return {};
  }
  stages_.emplace_front(key, made);
  by_key_[key] = stages_.begin();
  if (stages_.size() > kMostStages) {
    by_key_.erase(stages_.back().first);
    stages_.pop_back();
  }
  *stage = std::move(made);
  return {};
}

Status Execution::first_stage(int graph, const std::vector<Type>& types, std::shared_ptr<Stage>* stage) {
  std::string key = (watched_ ? "watched " : "graph ") + std::to_string(graph);
  for (const Type& type : types) key += " " + text_of(type);
  return find(key, [&](Stage* made) { return Planner(file_, &source_.packs, &source_.pool, &made->plan).run(graph, types); }, stage);
}

Status Execution::next_stage(const std::shared_ptr<Stage>& before, const Results& results, std::shared_ptr<Stage>* stage) {
  std::string key = "after " + std::to_string(before->number);
  std::vector<std::vector<Type>> types;
  for (const std::vector<Buffer>& made : results) {
    types.emplace_back();
    for (const Buffer& buffer : made) types.back().push_back(buffer.type), key += " " + text_of(buffer.type);
  }
  std::vector<const uint8_t*> numbers;
  for (const int value : before->plan.missing) {
    numbers.push_back(static_cast<const uint8_t*>(before->tensors[value].data));
    key.append(" ").append(reinterpret_cast<const char*>(numbers.back()), bytes_of(before->plan.values[value].type));
  }
  const auto make = [&](Stage* made) {
    made->before = before;
    return Planner(file_, &source_.packs, &source_.pool, &made->plan).resume(before->plan, numbers, types);
  };
  return find(key, make, stage);
}

Status Execution::prepare(const std::vector<Type>& types, std::shared_ptr<Stage>* stage) { return first_stage(0, types, stage); }

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
    if (plan.parallel) stage.order = order_of(plan);
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

void Execution::set_lanes(int count, const Threads& threads) {
  if (count > 1) lanes_ = std::make_unique<Lanes>(count, threads);
}

Status Execution::run_step(const Stage& stage, int s, myc_context* context) {
  const Step& step = stage.plan.steps[s];
  const myc_tensor* const* in = stage.step_inputs.data() + stage.step_places[s].first;
  myc_tensor* const* out = stage.step_outputs.data() + stage.step_places[s].second;
  if (!step.kernel) {
    std::memcpy(out[0]->data, in[0]->data, static_cast<size_t>(in[0]->size * item_bytes(in[0]->dtype)));
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
    if (!observer_->before(about, node, describe)) return {kError, "the callback before node '" + std::string(about.name) + "' ended the run"};
    if (Status status = run_steps(stage, node.first, node.last, context); !status) return status;
    if (!observer_->after(about, node, describe)) return {kError, "the callback after node '" + std::string(about.name) + "' ended the run"};
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
  if (stage->plan.rest.empty()) {  // the only stage: small models notice what follows
    struct Active {
      Stage& stage;
      ~Active() { stage.active = false; }
    } now{*stage};
    stage->active = true;
    return run_steps(*stage);
  }
  struct UnderWay {  // the stages of one run of a graph
    std::vector<std::shared_ptr<Stage>> stages;
    std::deque<Results> results;  // of their activations: later stages read them
    ~UnderWay() { end(); }
    void end() {
      for (const auto& s : stages) s->active = false;
      stages.clear();
      results.clear();
    }
  } run;
  std::vector<Buffer> carried;  // the arguments of the graph, if it was called in place of another
  const size_t base = level;
  for (;;) {
    stage->active = true;
    run.stages.push_back(stage);
    if (Status status = run_steps(*stage); !status) return status;
    const Plan& plan = stage->plan;
    if (plan.rest.empty()) return {};
    if (plan.tail) {  // the callee takes this graph's place: a loop of calls does not grow
      std::vector<Buffer> next;
      std::vector<Argument> arguments;
      std::vector<Type> types;
      for (const int i : plan.activations[0].arguments) {
        const myc_tensor& t = stage->tensors[i];
        if (Status status = copied(type_of(t), t.data, &next.emplace_back()); !status) return status;
        types.push_back(next.back().type);
        arguments.push_back({next.back().type, next.back().memory.data()});
      }
      run.end();
      carried = std::move(next);
      level = base;
      if (Status status = first_stage(plan.activations[0].graph, types, &stage); !status) return status;
      if (Status status = bind(*stage, level, arguments, {}, sink); !status) return status;
      continue;
    }
    Results& results = run.results.emplace_back();
    for (const Activation& activation : plan.activations) {
      if (Status status = activate(activation, *stage, level + 1, depth + 1, &results.emplace_back()); !status)
        return {status.code, node_text(file_.nodes[activation.node]) + status.text};
    }
    if (Status status = next_stage(stage, results, &stage); !status) return status;
    if (Status status = bind(*stage, ++level, {}, results, sink); !status) return status;
  }
}

Status Execution::activate(const Activation& activation, const Stage& stage, size_t level, int depth, std::vector<Buffer>* results) {
  std::vector<Argument> arguments;
  for (const int i : activation.arguments) arguments.push_back(argument_of(stage.tensors[i]));
  if (activation.loops) return loop(activation, std::move(arguments), level, depth, results);
  return call(activation.graph, arguments, level, depth, results);
}

Status Execution::call(int graph, const std::vector<Argument>& arguments, size_t level, int depth, std::vector<Buffer>* results) {
  if (depth > kDeepest) return {kNotSupported, "subgraphs call one another more than " + std::to_string(kDeepest) + " deep"};
  std::vector<Type> types;
  for (const Argument& argument : arguments) types.push_back(argument.type);
  std::shared_ptr<Stage> stage;
  if (Status status = first_stage(graph, types, &stage); !status) return status;
  results->resize(file_.graphs[graph].outputs.size());
  const Sink sink = [&](int output, const Type& type) {
    (*results)[output] = {type, Memory(bytes_of(type))};
    return (*results)[output].memory.data();
  };
  if (Status status = bind(*stage, level, arguments, {}, sink); !status) return status;
  return finish(stage, level, depth, sink);
}

// Arguments: number of runs, condition, what is carried from run to run, what stays. Results: what is carried, then the
// further results of all runs, stacked.
Status Execution::loop(const Activation& activation, std::vector<Argument> arguments, size_t level, int depth, std::vector<Buffer>* results) {
  const FileGraph& body = file_.graphs[activation.graph];
  const size_t carried = static_cast<size_t>(activation.carried);
  if (element_count(arguments[0].type.shape) != 1 || arguments[0].type.dtype != MYC_I64)
    return {kOperatorAttribute, "the number of runs must be one int64, but is " + text_of(arguments[0].type)};
  if (element_count(arguments[1].type.shape) != 1 || arguments[1].type.dtype != MYC_BOOL)
    return {kOperatorAttribute, "the condition must be one bool, but is " + text_of(arguments[1].type)};
  int64_t most, run = 0;
  std::memcpy(&most, arguments[0].data, sizeof(most));
  uint8_t goes_on = *arguments[1].data;
  arguments[0] = {{MYC_I64, {}}, reinterpret_cast<const uint8_t*>(&run)};
  arguments[1] = {{MYC_BOOL, {}}, &goes_on};
  std::vector<Buffer> state;
  std::vector<Stacked> stacked(body.outputs.size() - 1 - carried);
  for (; run < most && goes_on; ++run) {
    std::vector<Buffer> made;
    if (Status status = call(activation.graph, arguments, level, depth, &made); !status) return status;
    if (made[0].type.dtype != MYC_BOOL || element_count(made[0].type.shape) != 1)
      return {kOperatorAttribute, "the condition after a run must be one bool, but is " + text_of(made[0].type)};
    goes_on = *made[0].memory.data();
    for (size_t i = 0; i < carried; ++i) {
      if (made[1 + i].type.dtype != arguments[2 + i].type.dtype)
        return {kInferFailed, "a run makes " + text_of(made[1 + i].type) + " of " + text_of(arguments[2 + i].type)};
      arguments[2 + i] = {made[1 + i].type, made[1 + i].memory.data()};
    }
    for (size_t i = 0; i < stacked.size(); ++i)
      if (Status status = stacked[i].add(made[1 + carried + i]); !status) return status;
    state = std::move(made);
  }
  for (size_t i = 0; i < carried; ++i) {
    Buffer& result = results->emplace_back();
    if (run) result = std::move(state[1 + i]);
    else if (Status status = copied(arguments[2 + i].type, arguments[2 + i].data, &result); !status) return status;
  }
  for (size_t i = 0; i < stacked.size(); ++i) {
    if (!run) {  // no run has told the sizes
      const FileTensor& tensor = file_.tensors[body.outputs[1 + carried + i]];
      stacked[i].type = {abi_dtype(tensor.dtype), tensor.shape};
      for (int64_t& n : stacked[i].type.shape) n = std::max<int64_t>(n, 0);
      if (stacked[i].type.dtype < 0) return {kNotSupported, "a result of the loop has dtype number " + std::to_string(tensor.dtype)};
    }
    if (stacked[i].type.rank() >= MYC_MAX_RANK) return {kNotSupported, "a result of the loop has more than 8 dimensions"};
    stacked[i].type.shape.insert(stacked[i].type.shape.begin(), stacked[i].count);
    if (!stacked[i].memory.data()) stacked[i].memory = Memory(0);
    results->push_back({std::move(stacked[i].type), std::move(stacked[i].memory)});
  }
  return {};
}

}  // namespace mycelia::lite
