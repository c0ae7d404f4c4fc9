#include "session.h"

#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "operators/find.h"
#include "schema.h"

namespace mycelia::lite {

int& Workspace::Use::held() {
  thread_local int count = 0;
  return count;
}

namespace {

// A tensor of the file without memory.
Status shared_workspace_runs() { return {kReentered, "a model that shares the workspace is running: it is not waited for inside of a run"}; }

Border described(const FileTensor& tensor, Session* session) {
  Border border;
  border.name = std::string(tensor.name);
  border.type = {std::max(abi_dtype(tensor.dtype), 0), tensor.shape};
  border.format = tensor.format;
  border.meaning = tensor.meaning;
  border.of_model = true;
  border.session = session;
  return border;
}

void set_made(Border* tensor, bool made) {
  const std::lock_guard<std::mutex> lock(tensor->guard);
  tensor->made = made;
}

}  // namespace

// Copies what nodes compute to the tensors that are kept.
class Session::Recorder : public Observer {
 public:
  Recorder(Session& session, Observer* next) : session_(session), next_(next), first_(session.source_->file.nodes.data()) {}
  bool before(const FileNode& node, const NodeRun& run, const Describe& tensor) override { return !next_ || next_->before(node, run, tensor); }
  bool after(const FileNode& node, const NodeRun& run, const Describe& tensor) override {
    const auto kept = session_.kept_.find(static_cast<int>(&node - first_));
    for (size_t i = 0; kept != session_.kept_.end() && i < kept->second.size(); ++i)
      if (const myc_tensor* const made = tensor(run.outputs[i])) copy(*made, kept->second[i].get());
    return !next_ || next_->after(node, run, tensor);
  }

 private:
  // Without memory for it the tensor has no elements.
  static void copy(const myc_tensor& value, Border* tensor) {
    const std::lock_guard<std::mutex> lock(tensor->guard);
    tensor->made = value.data != nullptr;  // what is inside of a delegate's nodes has no memory here
    if (!tensor->made) return;
    tensor->type = {value.dtype, {value.shape, value.shape + value.rank}};
    const size_t bytes = bytes_of(tensor->type);
    if (!tensor->memory.data() || tensor->memory.size() != bytes) tensor->memory = Memory(bytes);
    tensor->data = tensor->memory.data();
    tensor->made = tensor->data != nullptr;
    if (tensor->made && bytes) std::memcpy(tensor->data, value.data, bytes);
  }

  Session& session_;
  Observer* const next_;
  const FileNode* const first_;
};

Status Session::open(std::shared_ptr<Source> source, const Options& options) {
  if (!kernels().isa()) return {kNotSupported, "this processor runs none of the library's kernels, or not those that MYCELIA_ISA names"};
  if (!threads_) {
    threads_ = std::make_shared<Threads>();
    if (Status status = threads_->prepare(options); !status) return status;
  }
  {
    const std::lock_guard<std::mutex> lock(source->sharing);
    if (source->updating) return {kReentered, "the weights of the model are just being replaced"};
    ++source->sessions;
    source_ = std::move(source);
  }
  execution_ = std::make_unique<Execution>(*source_, *workspace_, graph_);
  lanes_ = options.lanes();
  lanes_for_ = options.lanes_for;
  set_lanes();
  execution_->set_delegates(delegates_ = options.delegates);
  execution_->set_fast(fast_ = is_fast(options));
  const ModelFile& file = source_->file;
  std::string unknown;  // all of them are told, not the first alone
  for (const FileNode& node : file.nodes) {
    if (find_operator(node.kind) || !node.branches.empty()) continue;
    unknown += message({unknown.empty() ? "" : ", ", name_of_operator(node.kind), " (node '", node.name, "')"});
  }
  if (!unknown.empty()) return {kOperatorNotFound, message({"operators without a kernel: ", unknown, not_here()})};
  std::vector<std::vector<int64_t>> shapes;
  bool open = false;
  const FileGraph& graph = file.graphs[graph_];
  for (size_t n = 0; n < graph.own_inputs; ++n) {
    const FileTensor& tensor = file.tensors[graph.inputs[n]];
    Border border = described(tensor, this);
    if (abi_dtype(tensor.dtype) < 0) return {kNotSupported, message({"input '", border.name, "' has dtype number ", tensor.dtype})};
    for (const int64_t size : tensor.shape) open = open || size < 0;
    shapes.push_back(tensor.shape);
    inputs_.push_back(std::move(border));
  }
  for (size_t n = 0; n < graph.own_outputs; ++n) outputs_.push_back(described(file.tensors[graph.outputs[n]], this));
  if (Status status = open_variables(); !status) return status;
  return open ? Status() : resize(shapes);  // with open sizes the plan waits for resize
}

Session::~Session() {
  if (!source_) return;
  const std::lock_guard<std::mutex> lock(source_->sharing);
  --source_->sessions;
}

Status Session::copy_input(size_t i, const Border& given) {
  Border& own = inputs_[i];
  if (&given == &own) return {};
  const std::lock_guard<std::mutex> lock(given.guard);
  if (given.type.dtype != own.type.dtype || given.type.shape != own.type.shape)
    return {kInputTensorWrong, message({"input '", own.name, "' must be ", text_of(own.type), ", but is ", text_of(given.type)})};
  if (!given.made || !given.data) return {kInputTensorWrong, message({"tensor '", given.name, "' for input '", own.name, "' has no elements"})};
  std::memmove(own.data, given.data, own.memory.size());
  return {};
}

Status Session::resize(const std::vector<std::vector<int64_t>>& given) {
  std::vector<std::vector<int64_t>> shapes = given;
  if (shapes.size() != inputs_.size())
    return {kParameterInvalid, message({shapes.size(), " shapes were given for ", inputs_.size(), " inputs"})};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<int64_t>& declared = source_->file.tensors[source_->file.graphs[graph_].inputs[i]].shape;
    if (declared.empty() && shapes[i] == std::vector<int64_t>{1}) shapes[i].clear();  // one number, as some callers have no other
    if (shapes[i].size() != declared.size())
      return {kParameterInvalid, message({"input '", inputs_[i].name, "' has ", declared.size(), " dimensions, but ", shapes[i].size(), " sizes were given"})};
    for (size_t axis = 0; axis < declared.size() && !source_->file.fixed_by.empty(); ++axis)
      if (declared[axis] >= 0 && declared[axis] != shapes[i][axis])
        return {kParameterInvalid, message({"input '", inputs_[i].name, "' was converted with size ", declared[axis], " of axis ", axis, ", of which ", source_->file.fixed_by, " made constants: convert the model with this size open"})};
  }
  const Threads::Use use(*threads_);
  const ModelFile& file = source_->file;
  std::vector<Type> types;
  std::vector<Memory> memories;
  std::vector<Execution::Argument> arguments;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (const int64_t n : shapes[i])
      if (n < 0) return {kParameterInvalid, message({"input '", inputs_[i].name, "' cannot be resized to a size of ", n, ": sizes are 0 or more (negative dimension)"})};
    if (element_count(shapes[i]) < 0) return {kInferFailed, message({"input '", inputs_[i].name, "' is too large"})};
    types.push_back({inputs_[i].type.dtype, shapes[i]});
  }
  const size_t model_inputs = types.size();
  add_variables(&types);
  std::shared_ptr<Stage> stage;
  if (Status status = execution_->prepare(types, &stage); !status) return status;
  if (Status status = check_states(stage->plan); !status) return status;
  types.resize(model_inputs);

  std::vector<Border> outputs;
  if (Status status = check_room(types, stage->plan); !status) return status;
  bool fine = true;
  for (const Type& type : types) {
    fine = memories.emplace_back(Memory::zeros(bytes_of(type))).data() && fine;
    arguments.push_back({type, memories.back().data()});
  }
  add_variables(&arguments);
  for (size_t i = 0; i < file.graphs[graph_].own_outputs; ++i) outputs.push_back(described(file.tensors[file.graphs[graph_].outputs[i]], this));
  for (const auto& [output, value] : stage->plan.outputs) {
    if (static_cast<size_t>(output) >= outputs.size()) continue;
    outputs[output].type = stage->plan.values[value].type;
    outputs[output].memory = Memory(bytes_of(outputs[output].type));
    fine = outputs[output].memory.data() && fine;
  }
  if (!fine) return no_memory();
  const Workspace::Use alone(*workspace_);
  if (!alone) return shared_workspace_runs();
  if (Status status = execution_->bind(stage, arguments, [&](int output, const Type&) {
        const size_t i = output;
        return i < outputs.size() ? outputs[i].memory.data() : place_of(stage->plan, i);
      });
      !status)
    return status;

  stage_ = std::move(stage);
  rebound_ = false;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const std::lock_guard<std::mutex> lock(inputs_[i].guard);
    inputs_[i].memory = std::move(memories[i]);
    inputs_[i].data = inputs_[i].memory.data();
    inputs_[i].type = types[i];
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const std::lock_guard<std::mutex> lock(outputs_[i].guard);
    outputs_[i].type = std::move(outputs[i].type);
    outputs_[i].memory = std::move(outputs[i].memory);
    outputs_[i].data = outputs_[i].memory.data();
    outputs_[i].made = false;
  }
  return {};
}

Status Session::bind(const std::shared_ptr<Stage>& stage) {
  if (!rebound_ && execution_->is_bound(*stage)) return {};
  std::vector<Execution::Argument> arguments;
  for (const Border& input : inputs_) arguments.push_back({input.type, input.data});
  add_variables(&arguments);
  rebound_ = false;
  return execution_->bind(stage, arguments, [&](int output, const Type&) { return place_of(stage->plan, static_cast<size_t>(output)); });
}

Status Session::check_room(const std::vector<Type>& inputs, const Plan& plan) const {
  uint64_t sum = static_cast<uint64_t>(plan.arena_bytes), most = sum;
  std::string largest = "the arena of what nodes compute";
  const auto count = [&](const char* what, const std::string& name, const Type& type) {
    const uint64_t bytes = static_cast<uint64_t>(element_count(type.shape)) * item_bytes(type.dtype);
    if (bytes > most) most = bytes, largest = message({what, " '", name, "', ", text_of(type)});
    sum += std::min(bytes, UINT64_MAX - sum);
  };
  for (size_t i = 0; i < inputs.size(); ++i) count("input", inputs_[i].name, inputs[i]);
  for (const auto& [output, value] : plan.outputs)
    if (static_cast<size_t>(output) < outputs_.size()) count("output", outputs_[output].name, plan.values[value].type);
  if (has_room(sum)) return {};
  return {kMemory, message({"no memory for the ", sum, " bytes of tensors of these shapes, of which ", largest, " has ", most})};
}

Status Session::predict(Observer* observer, NodeTimes* times) {
  if (!stage_) return {kInferLater, "the model has open sizes: resize it before it is run (negative dimension)"};
  const Threads::Use use(*threads_);
  const bool watched = observer || !kept_.empty();
  std::shared_ptr<Stage> stage = stage_;
  execution_->watch(watched);
  if (watched) {
    std::vector<Type> types;
    for (const Border& input : inputs_) types.push_back(input.type);
    add_variables(&types);
    if (Status status = execution_->prepare(types, &stage); !status) return status;
  }
  const Workspace::Use alone(*workspace_);
  if (!alone) return shared_workspace_runs();
  if (Status status = bind(stage); !status) return status;
  for (Border& output : outputs_) set_made(&output, false);
  for (auto& [node, tensors] : kept_)
    for (auto& tensor : tensors) set_made(tensor.get(), false);
  const auto sink = [&](int output, const Type& type) -> uint8_t* {  // of an output that a later stage makes
    if (static_cast<size_t>(output) >= outputs_.size()) {
      const Type& own = (*variables_)[sets_[output - outputs_.size()]].type;
      return type.dtype == own.dtype && type.shape == own.shape ? place_of(Plan(), static_cast<size_t>(output)) : nullptr;
    }
    Border& border = outputs_[output];
    const std::lock_guard<std::mutex> lock(border.guard);
    if (!border.memory.data() || border.memory.size() != bytes_of(type)) {
      border.memory = Memory(bytes_of(type));
      border.data = border.memory.data();  // memory that a caller gave is of another size
    }
    border.type = type;
    return border.data;
  };
  Recorder recorder(*this, observer);
  const Status status = execution_->run(stage, sink, kept_.empty() ? observer : &recorder, times);
  execution_->watch(false);
  for (Border& output : outputs_) set_made(&output, bool(status));
  if (status) keep_variables(stage->plan);
  return status;
}

const std::vector<std::unique_ptr<Border>>* Session::keep(const std::string& name) {
  const ModelFile& file = source_->file;
  for (size_t n = 0; n < file.nodes.size(); ++n) {
    if (file.nodes[n].name != name) continue;
    std::vector<std::unique_ptr<Border>>& tensors = kept_[static_cast<int>(n)];
    for (size_t i = tensors.size(); i < file.nodes[n].outputs.size(); ++i) {
      tensors.push_back(std::make_unique<Border>(described(file.tensors[file.nodes[n].outputs[i]], nullptr)));
      tensors.back()->made = false;
    }
    return &tensors;
  }
  return nullptr;
}

Status Session::update_weights(const std::vector<const Border*>& weights) {
  struct Updating {  // while it lives, no other model can be made of the file
    Source& source;
    const bool begun;
    explicit Updating(Source& source) : source(source), begun(begin(source)) {}
    ~Updating() {
      const std::lock_guard<std::mutex> lock(source.sharing);
      source.updating = source.updating && !begun;
    }
    static bool begin(Source& source) {
      const std::lock_guard<std::mutex> lock(source.sharing);
      return source.sessions == 1 && (source.updating = true);
    }
  } updating(*source_);
  if (!updating.begun) return {kNotSupported, "the weights are shared with other models: they cannot be updated"};
  if (!Workspace::Use(*workspace_)) return shared_workspace_runs();  // before anything changes
  ModelFile& file = source_->file;
  std::map<size_t, Memory> made;
  for (const Border* given : weights) {
    const std::lock_guard<std::mutex> lock(given->guard);
    size_t i = 0;
    while (i < file.tensors.size() && !(file.tensors[i].data && file.tensors[i].name == given->name)) ++i;
    if (i == file.tensors.size()) return {kParameterInvalid, message({"the model has no weight '", given->name, "'"})};
    const Type type{abi_dtype(file.tensors[i].dtype), file.tensors[i].shape};
    if (given->type.dtype != type.dtype || given->type.shape != type.shape)
      return {kParameterInvalid, message({"weight '", given->name, "' must be ", text_of(type), ", but is ", text_of(given->type)})};
    if (!given->made || !given->data) return {kParameterInvalid, message({"the tensor for weight '", given->name, "' has no elements"})};
    Memory copy(bytes_of(type));
    if (!copy.data()) return {kMemory, message({"no memory for weight '", given->name, "'"})};
    std::memcpy(copy.data(), given->data, bytes_of(type));
    made[i] = std::move(copy);
  }
  std::map<size_t, FileTensor> before;
  for (auto& [i, memory] : made) {
    FileTensor& tensor = file.tensors[i];
    before.emplace(i, tensor);
    tensor.data = memory.data();
    tensor.bytes = memory.size();
    tensor.panels = FileTensor::kNone;
  }
  const Status status = replan();
  if (status) {
    for (auto& [i, memory] : made) source_->updated[i] = std::move(memory);
  } else {
    for (auto& [i, tensor] : before) file.tensors[i] = std::move(tensor);
    if (Status old = replan(); !old) return old;
  }
  return status;
}

Status Session::plan_portably(Packs* packs, Pool* pool, Plan* made) {
  if (!stage_) return {kInferLater, "the model has open sizes: resize it before it is planned"};
  const Planning planning(*source_);
  if (!planning) return planned_already();
  std::vector<Type> types;
  for (const Border& input : inputs_) types.push_back(input.type);
  add_variables(&types);
  made->portable = true;
  return Planner(source_->file, packs, pool, made).run(0, types);
}

void Session::set_lanes() {
  if (lanes_ > 1) execution_->set_lanes(lanes_for_(lanes_, *threads_));
}

Status Session::replan() {
  stage_.reset();
  execution_ = std::make_unique<Execution>(*source_, *workspace_, graph_);  // the old one's plans have constants that were computed of the old weights
  set_lanes();
  execution_->set_delegates(delegates_);
  execution_->set_fast(fast_);
  source_->packs.clear();
  std::vector<std::vector<int64_t>> shapes;
  for (const Border& input : inputs_) shapes.push_back(input.type.shape);
  for (const auto& shape : shapes)
    for (const int64_t n : shape)
      if (n < 0) return {};
  return resize(shapes);
}

}  // namespace mycelia::lite
