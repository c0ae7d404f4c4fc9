// Variables: Custom nodes that a model keeps a tensor by from run to run, and what a model that learns says of them.
#include <cstring>

#include "kernels.h"
#include "model_file.h"
#include "schema.h"

namespace mycelia::lite {

using namespace schema;

namespace {

std::string text_of(const FileNode& node) {
  return message({"node '", node.name, "' (", node.attributes.text(kCustom_type), ")"});
}

}  // namespace

Span<uint8_t> attribute_of(const FileNode& node, std::string_view name) {
  const TableSpan all = node.attributes.tables(kCustom_attr);
  for (uint32_t i = 0; i < all.size(); ++i)
    if (const Table attribute = all[i]; attribute && attribute.text(kAttribute_name) == name) return attribute.span<uint8_t>(kAttribute_data);
  return {};
}

int64_t attribute_number(const FileNode& node, std::string_view name, int64_t most) {
  const Span<uint8_t> bytes = attribute_of(node, name);
  int64_t number = -1;
  if (bytes.size == sizeof(number)) std::memcpy(&number, bytes.data, sizeof(number));
  return number >= 0 && number <= most ? number : -1;
}

namespace {

bool same_type(const FileTensor& a, const FileTensor& b) { return a.dtype == b.dtype && a.shape == b.shape; }

size_t bytes_of(const FileTensor& tensor) {
  const int64_t count = element_count(tensor.shape), item = item_bytes(abi_dtype(tensor.dtype));
  return count < 0 || !item ? SIZE_MAX : static_cast<size_t>(count * item);
}

// A variable, by the node of the first subgraph that has its first elements, or where another subgraph reads it.
Status read_variable(const FileNode& node, size_t graph, ModelFile* file) {
  if (!node.inputs.empty() || node.outputs.size() != 1 || node.outputs[0] >= file->tensors.size())
    return broken(text_of(node) + " must have no input and one output");
  const FileTensor& tensor = file->tensors[node.outputs[0]];
  GraphState use;
  use.tensor = node.outputs[0];
  if (graph > 0) {
    const int64_t of = attribute_number(node, "of", static_cast<int64_t>(file->states.size()) - 1);
    if (of < 0 || !same_type(tensor, file->tensors[file->states[of].tensor]))
      return broken(text_of(node) + " names no variable of the first subgraph of its type");
    use.variable = static_cast<size_t>(of);
    for (const GraphState& other : file->graphs[graph].states)
      if (other.variable == use.variable) return broken(text_of(node) + " reads a variable that is read already");
  } else {
    FileState state;
    state.tensor = node.outputs[0];
    const Span<uint8_t> first = attribute_of(node, "first");
    state.first = {reinterpret_cast<const char*>(first.data), first.size};
    const int64_t role = attribute_number(node, "role", FileState::kMomentum);
    state.role = static_cast<FileState::Role>(role < 0 ? 0 : role);
    if (state.first.size() != bytes_of(tensor))
      return broken(message({text_of(node), ": ", state.first.size(), " bytes are not what its tensor holds"}));
    use.variable = file->states.size();
    file->states.push_back(state);
  }
  file->graphs[graph].states.push_back(use);
  return {};
}

}  // namespace

Status read_state(const FileNode& node, size_t graph, ModelFile* file, bool* found) {
  if (node.kind != kOp_Custom) return {};
  const std::string_view type = node.attributes.text(kCustom_type);
  *found = type == "State" || type == "SetState" || type == "Training";
  if (!*found) return {};
  ask_for_part("states");
  if (type == "State") return read_variable(node, graph, file);
  if (type == "Training") return graph ? broken(text_of(node) + " must stand in the first subgraph") : read_training(node, file);
  if (node.inputs.size() != 2 || !node.outputs.empty()) return broken(text_of(node) + " must have 2 inputs and no output");
  for (GraphState& state : file->graphs[graph].states) {
    if (state.tensor != node.inputs[1] || state.set) continue;
    state.next = node.inputs[0];
    state.set = true;
    return {};
  }
  return broken(text_of(node) + ": its second input is no variable, or one that is set already");
}

Status bind_states(ModelFile* file) {
  const FileTraining& training = file->training;
  if (training.there)
    if (Status status = check_training(*file); !status) return status;
  for (size_t g = 0; g < file->graphs.size(); ++g) {
    FileGraph& graph = file->graphs[g];
    const int number = static_cast<int>(g);
    if (!graph.states.empty() && g && number != training.forward && number != training.gradients && number != training.update)
      return {kNotSupported, message({"subgraph '", graph.name, "': variables of a subgraph that is called are not supported"})};
    for (const GraphState& state : graph.states) {
      if (!state.set && !training.there) return broken("a variable is never set");
      graph.inputs.push_back(state.tensor);
    }
    for (const GraphState& state : graph.states)
      if (state.set) graph.outputs.push_back(state.next);
  }
  return {};
}

}  // namespace mycelia::lite
