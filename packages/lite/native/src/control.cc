// Runs of more than one stage: subgraphs that are called, loops, and what waits for data.
#include <algorithm>
#include <cstring>
#include <deque>

#include "execution.h"
#include "kernels.h"

namespace mycelia::lite {

namespace {

constexpr int kDeepest = 64;  // calls within calls that run on their own

Type type_of(const myc_tensor& t) { return {t.dtype, {t.shape, t.shape + t.rank}}; }

Execution::Argument argument_of(const myc_tensor& t) { return {type_of(t), static_cast<const uint8_t*>(t.data)}; }

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

Status Execution::run_stages(std::shared_ptr<Stage> stage, size_t level, int depth, const Sink& sink) {
  ask_for_part("control");
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
