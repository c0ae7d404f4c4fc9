#include "session.h"

#include <cstring>

#include "kernels.h"
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
  std::string unknown;  // all of them are told, not the first alone
  for (const FileNode& node : file_.nodes) {
    if (find_operator(node.kind) || !node.branches.empty()) continue;
    unknown += (unknown.empty() ? "" : ", ") + std::string(name_of_operator(node.kind)) + " (node '" + std::string(node.name) + "')";
  }
  if (!unknown.empty()) return {kOperatorNotFound, "operators without a kernel: " + unknown};
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
  std::vector<Type> types;
  std::vector<Memory> memories;
  std::vector<Execution::Argument> arguments;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (const int64_t n : shapes[i])
      if (n < 0) return {kInferLater, "input '" + inputs_[i].name + "' has an open size: resize the model first (negative dimension)"};
    if (element_count(shapes[i]) < 0) return {kInferFailed, "input '" + inputs_[i].name + "' is too large"};
    types.push_back({inputs_[i].type.dtype, shapes[i]});
  }
  std::shared_ptr<Stage> stage;
  if (Status status = execution_.prepare(types, &stage); !status) return status;

  const auto sized = [](const Type& type) { return Memory(static_cast<size_t>(element_count(type.shape) * item_bytes(type.dtype))); };
  std::vector<Border> outputs;
  bool fine = true;
  for (const Type& type : types) {
    fine = memories.emplace_back(sized(type)).data() && fine;
    arguments.push_back({type, memories.back().data()});
  }
  for (const uint32_t i : file_.outputs) {
    const FileTensor& tensor = file_.tensors[i];
    outputs.push_back({std::string(tensor.name), {std::max(abi_dtype(tensor.dtype), 0), tensor.shape}, Memory()});
  }
  for (const auto& [output, value] : stage->plan.outputs) {
    outputs[output].type = stage->plan.values[value].type;
    outputs[output].memory = sized(outputs[output].type);
    fine = outputs[output].memory.data() && fine;
  }
  if (!fine) return {kMemory, "no memory for the tensors of these shapes"};
  for (Memory& memory : memories) std::memset(memory.data(), 0, memory.size());
  if (Status status = execution_.bind(stage, arguments, [&](int output, const Type&) { return outputs[output].memory.data(); }); !status) return status;

  stage_ = std::move(stage);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i].memory = std::move(memories[i]);
    inputs_[i].type = types[i];
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].type = std::move(outputs[i].type);
    outputs_[i].memory = std::move(outputs[i].memory);
  }
  return {};
}

Status Session::predict() {
  if (!stage_) return {kInferLater, "the model has open sizes: resize it before it is run (negative dimension)"};
  const auto sink = [&](int output, const Type& type) {  // of an output that a later stage makes
    Border& border = outputs_[output];
    const size_t bytes = static_cast<size_t>(element_count(type.shape) * item_bytes(type.dtype));
    if (!border.memory.data() || border.memory.size() != bytes) border.memory = Memory(bytes);
    border.type = type;
    return border.memory.data();
  };
  return execution_.run(stage_, sink);
}

}  // namespace mycelia::lite
