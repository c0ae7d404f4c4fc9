// Variables: Custom nodes that a model keeps a tensor by from run to run.
#include "kernels.h"
#include "model_file.h"
#include "schema.h"

namespace mycelia::lite {

using namespace schema;

Status read_state(const FileNode& node, bool of_model, ModelFile* file, bool* found) {
  if (node.kind != kOp_Custom) return {};
  const std::string_view type = node.attributes.text(kCustom_type);
  *found = type == "State" || type == "SetState";
  if (!*found) return {};
  ask_for_part("states");
  const std::string which = "node '" + std::string(node.name) + "' (" + std::string(type) + ")";
  if (!of_model) return {kNotSupported, which + ": variables of a subgraph that is called are not supported"};
  if (type == "SetState") {
    if (node.inputs.size() != 2 || !node.outputs.empty()) return broken(which + " must have 2 inputs and no output");
    for (FileState& state : file->states) {
      if (state.tensor != node.inputs[1] || state.set) continue;
      state.next = node.inputs[0];
      state.set = true;
      return {};
    }
    return broken(which + ": its second input is no variable, or one that is set already");
  }
  const TableSpan attributes = node.attributes.tables(kCustom_attr);
  if (!node.inputs.empty() || node.outputs.size() != 1 || node.outputs[0] >= file->tensors.size() || attributes.size() != 1)
    return broken(which + " must have no input, one output and one attribute");
  const FileTensor& tensor = file->tensors[node.outputs[0]];
  FileState state;
  state.tensor = node.outputs[0];
  state.first = attributes[0].text(kAttribute_data);
  const int64_t count = element_count(tensor.shape), item = item_bytes(abi_dtype(tensor.dtype));
  if (count < 0 || !item || state.first.size() != static_cast<size_t>(count * item))
    return broken(which + ": " + std::to_string(state.first.size()) + " bytes are not what its tensor holds");
  file->states.push_back(state);
  return {};
}

}  // namespace mycelia::lite
