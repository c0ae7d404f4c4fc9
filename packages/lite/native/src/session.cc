#include "session.h"

#include <cstring>

#include "kernels.h"
#include "mycelia/cpu.h"
#include "schema.h"

namespace mycelia::lite {

Status Session::open_file(const std::string& path) {
  if (Status status = bytes_.map(path); !status) return status;
  file_.outside.set_folder(folder_of(path));
  return load();
}

Status Session::open_bytes(const void* data, size_t size) {
  if (Status status = bytes_.copy(data, size); !status) return status;
  return load();
}

Status Session::open_memory(Memory memory, size_t size, const std::string& folder) {
  bytes_.take(std::move(memory), size);
  file_.outside.set_folder(folder);
  return load();
}

Status Session::load() {
  if (!kernels().isa()) return {kNotSupported, "this processor runs none of the library's kernels, or not those that MYCELIA_ISA names"};
  if (Status status = read_model_file(bytes_.data(), bytes_.size(), &file_); !status) return status;
  std::vector<std::vector<int64_t>> shapes;
  bool open = false;
  for (const uint32_t i : file_.inputs) {
    const FileTensor& tensor = file_.tensors[i];
    Border border{std::string(tensor.name), {abi_dtype(tensor.dtype), tensor.shape}, Memory()};
    if (border.type.dtype < 0) return {kNotSupported, "input '" + border.name + "' has dtype number " + std::to_string(tensor.dtype)};
    for (const int64_t n : tensor.shape) open = open || n < 0;
    shapes.push_back(tensor.shape);
    inputs_.push_back(std::move(border));
  }
  for (const uint32_t i : file_.outputs) {
    const FileTensor& tensor = file_.tensors[i];
    outputs_.push_back({std::string(tensor.name), {std::max(abi_dtype(tensor.dtype), 0), tensor.shape}, Memory()});
  }
  return open ? Status() : resize(shapes);  // with open sizes the plan waits for resize
}

Status Session::resize(const std::vector<std::vector<int64_t>>& shapes) {
  if (shapes.size() != inputs_.size())
    return {kParameterInvalid, std::to_string(shapes.size()) + " shapes were given for " + std::to_string(inputs_.size()) + " inputs"};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<int64_t>& declared = file_.tensors[file_.inputs[i]].shape;
    if (shapes[i].size() != declared.size())
      return {kParameterInvalid, "input '" + inputs_[i].name + "' has " + std::to_string(declared.size()) + " dimensions, but " +
                                     std::to_string(shapes[i].size()) + " sizes were given"};
  }
  auto plan = std::make_unique<Plan>();
  if (Status status = Planner(file_, &packs_, plan.get()).run(shapes); !status) return status;

  std::vector<Memory> in, out;
  const auto sized = [](const Type& type) { return Memory(static_cast<size_t>(element_count(type.shape) * item_bytes(type.dtype))); };
  bool fine = true;
  for (const int i : plan->inputs) fine = in.emplace_back(sized(plan->values[i].type)).data() && fine;
  for (const int i : plan->outputs) fine = out.emplace_back(sized(plan->values[i].type)).data() && fine;
  Memory arena(static_cast<size_t>(plan->arena_bytes));
  if (!fine || !arena.data()) return {kMemory, "no memory for the tensors of these shapes"};
  for (Memory& memory : in) std::memset(memory.data(), 0, memory.size());

  plan_ = std::move(plan);
  arena_ = std::move(arena);
  for (size_t i = 0; i < in.size(); ++i) {
    inputs_[i].memory = std::move(in[i]);
    inputs_[i].type = plan_->values[plan_->inputs[i]].type;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    outputs_[i].memory = std::move(out[i]);
    outputs_[i].type = plan_->values[plan_->outputs[i]].type;
  }
  bind();
  return {};
}

// Gives each value its address, once for all runs.
void Session::bind() {
  tensors_.assign(plan_->values.size(), myc_tensor{});
  for (size_t i = 0; i < plan_->values.size(); ++i) {
    const Value& value = plan_->values[i];
    myc_tensor& t = tensors_[i];
    t.dtype = value.type.dtype;
    t.rank = value.type.rank();
    t.size = element_count(value.type.shape);
    std::copy(value.type.shape.begin(), value.type.shape.end(), t.shape);
    if (value.constant) t.data = const_cast<uint8_t*>(value.constant);
    else if (value.place >= 0) t.data = arena_.data() + value.place;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) tensors_[plan_->inputs[i]].data = inputs_[i].memory.data();
  for (size_t i = 0; i < outputs_.size(); ++i) tensors_[plan_->outputs[i]].data = outputs_[i].memory.data();
  for (size_t i = 0; i < plan_->values.size(); ++i)
    if (!tensors_[i].data) tensors_[i].data = tensors_[plan_->values[i].root].data;  // a view
  step_inputs_.clear();
  step_outputs_.clear();
  for (const Step& step : plan_->steps) {
    for (const int i : step.inputs) step_inputs_.push_back(i < 0 ? nullptr : &tensors_[i]);
    for (const int o : step.outputs) step_outputs_.push_back(&tensors_[o]);
  }
}

Status Session::predict() {
  if (!plan_) return {kInferLater, "the model has open sizes: resize it before it is run (negative dimension)"};
  myc_cpu_set_threads(threads_);
  myc_context* const context = myc_cpu_context();
  const myc_tensor* const* in = step_inputs_.data();
  myc_tensor* const* out = step_outputs_.data();
  for (const Step& step : plan_->steps) {
    if (!step.kernel) {
      std::memcpy(out[0]->data, in[0]->data, static_cast<size_t>(in[0]->size * item_bytes(in[0]->dtype)));
    } else {
      const myc_call call{in, out, step.attributes.data(), context, static_cast<int32_t>(step.inputs.size()),
                          static_cast<int32_t>(step.outputs.size())};
      if (const int32_t code = step.kernel(&call); code != MYC_OK) {
        const FileNode& node = file_.nodes[step.node];
        const char* reason = code == MYC_E_ARGUMENT ? context->error : code == MYC_E_MEMORY ? "no memory for scratch" : "its kernel does not take this case";
        return {kOperatorFailed, "node '" + std::string(node.name) + "' (" + name_of_operator(node.kind) + "): " + reason};
      }
    }
    in += step.inputs.size();
    out += step.outputs.size();
  }
  return {};
}

}  // namespace mycelia::lite
