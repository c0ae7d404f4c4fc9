// Nodes and subgraphs of a file: what calls what, and whether each value is there before it is read.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "model_file.h"
#include "schema.h"

namespace mycelia::lite {

namespace {

using namespace schema;

constexpr uint32_t kMostGraphs = 512;

// What the output of a PartialFusion or Switch stands for.
struct Function {
  std::vector<uint32_t> condition;  // one tensor, or none
  std::vector<FileBranch> branches;
};

struct GraphReader {
  ModelFile& file;
  std::unordered_map<uint32_t, Function> functions;  // of the graph at work, by tensor

  // `node` as it runs; `prepares` if it only makes a function that others call.
  Status resolve(FileNode* node, bool* prepares) {
    *prepares = node->kind == kOp_PartialFusion || node->kind == kOp_Switch;
    const std::string which = "node '" + std::string(node->name) + "' (" + name_of_operator(node->kind) + ")";
    if (node->kind == kOp_PartialFusion) {
      const int64_t graph = node->attributes.get<int64_t>(kPartialFusion_sub_graph_index);
      if (graph < 0 || graph >= static_cast<int64_t>(file.graphs.size()) || node->outputs.size() != 1)
        return broken(which + " stands for subgraph " + std::to_string(graph) + " of " + std::to_string(file.graphs.size()));
      functions[node->outputs[0]] = {{}, {{static_cast<int>(graph), node->inputs}}};
    } else if (node->kind == kOp_Switch) {
      Function both;
      for (size_t i = 1; i < 3 && node->inputs.size() == 3; ++i) {
        const auto found = functions.find(node->inputs[i]);
        if (found == functions.end() || found->second.branches.size() != 1) break;
        both.branches.push_back(found->second.branches[0]);
      }
      if (both.branches.size() != 2 || node->outputs.size() != 1)
        return {kNotSupported, which + ": expected a condition and the subgraphs of two PartialFusions"};
      both.condition = {node->inputs[0]};
      functions[node->outputs[0]] = std::move(both);
    } else if (node->kind == kOp_Call) {
      const auto found = node->inputs.empty() ? functions.end() : functions.find(node->inputs[0]);
      if (found == functions.end()) return {kNotSupported, which + ": its first input is no PartialFusion or Switch of the same subgraph"};
      const std::vector<uint32_t> more(node->inputs.begin() + 1, node->inputs.end());
      node->inputs = found->second.condition;
      node->branches = found->second.branches;
      for (FileBranch& branch : node->branches) {
        branch.inputs.insert(branch.inputs.end(), more.begin(), more.end());
        node->inputs.insert(node->inputs.end(), branch.inputs.begin(), branch.inputs.end());
      }
    } else if (node->kind == kOp_Custom && node->attributes.text(kCustom_type) == "Loop") {
      return resolve_loop(node, which);
    }
    return {};
  }

  Status resolve_loop(FileNode* node, const std::string& which) {
    const TableSpan attributes = node->attributes.tables(kCustom_attr);
    int64_t body = -1, carried = -1;
    for (uint32_t i = 0; i < attributes.size() && i < 8; ++i) {
      const Table attribute = attributes[i];
      const std::string_view name = attribute.text(kAttribute_name);
      const Span<int64_t> data{attribute.span<uint8_t>(kAttribute_data).data, attribute.span<uint8_t>(kAttribute_data).size / 8};
      const int64_t number = data.size == 1 && data[0] <= kMostGraphs * int64_t{1 << 16} ? data[0] : -1;
      if (name == "body") body = number;
      else if (name == "carried") carried = number;
      else return {kOperatorAttribute, which + ": attribute '" + std::string(name) + "' is unknown"};
    }
    if (body < 0 || body >= static_cast<int64_t>(file.graphs.size())) return broken(which + ": its body is no subgraph");
    if (carried < 0 || node->inputs.size() < 2 || static_cast<size_t>(carried) > node->inputs.size() - 2 ||
        static_cast<size_t>(carried) > node->outputs.size())
      return broken(which + ": it has " + std::to_string(node->inputs.size()) + " inputs and carries " + std::to_string(carried) + " values");
    node->loops = true;
    node->carried = static_cast<int>(carried);
    node->branches = {{static_cast<int>(body), node->inputs}};  // the number of the run stands for how many there are
    return {};
  }
};

// A Custom node of type State or SetState becomes a variable of the model.
Status read_state(const FileNode& node, bool of_model, ModelFile* file, bool* found) {
  if (node.kind != kOp_Custom) return {};
  const std::string_view type = node.attributes.text(kCustom_type);
  *found = type == "State" || type == "SetState";
  if (!*found) return {};
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

// A Custom node of type panels says how its input, a constant, holds the weights that are its output.
Status read_panels(const FileNode& node, ModelFile* file, bool* found) {
  *found = node.kind == kOp_Custom && node.attributes.text(kCustom_type) == "panels";
  if (!*found) return {};
  const std::string which = "node '" + std::string(node.name) + "' (panels)";
  const TableSpan attributes = node.attributes.tables(kCustom_attr);
  const auto within = [&](const std::vector<uint32_t>& all) { return all.size() == 1 && all[0] < file->tensors.size(); };
  if (!within(node.inputs) || !within(node.outputs) || attributes.size() != 1 || attributes[0].text(kAttribute_data).size() != sizeof(int64_t))
    return broken(which + " must have one input, one output and one attribute");
  FileTensor &packed = file->tensors[node.inputs[0]], &weights = file->tensors[node.outputs[0]];
  int64_t axis;
  std::memcpy(&axis, attributes[0].text(kAttribute_data).data(), sizeof(axis));
  const int64_t rank = static_cast<int64_t>(weights.shape.size()), count = element_count(weights.shape);
  if (!packed.data || packed.panels || packed.half || packed.scales || weights.data || packed.dtype != kDataType_FLOAT32 || weights.dtype != kDataType_FLOAT32)
    return broken(which + " must make weights of float32 of a constant");
  if (rank < 2 || count < 1 || (axis != 0 && (axis != rank - 1 || rank != 2))) return broken(which + ": its weights cannot lie in panels along axis " + std::to_string(axis));
  const int64_t columns = weights.shape[axis], depth = count / columns;
  if (element_count({depth, (columns + kPanel - 1) / kPanel, kPanel}) * static_cast<int64_t>(sizeof(float)) != static_cast<int64_t>(packed.bytes))
    return broken(which + ": " + std::to_string(packed.bytes) + " bytes are not the panels of its weights");
  weights.data = packed.data;
  weights.bytes = packed.bytes;
  weights.panels = axis ? FileTensor::kColumnsLast : FileTensor::kColumnsFirst;
  packed.data = nullptr;  // nobody else may read it
  packed.bytes = 0;
  return {};
}

Status check_calls(const ModelFile& file) {
  for (const FileNode& node : file.nodes) {
    for (const FileBranch& branch : node.branches) {
      const FileGraph& graph = file.graphs[branch.graph];
      const size_t results = node.loops ? node.outputs.size() + 1 : node.outputs.size();
      if (graph.inputs.size() != branch.inputs.size() || (node.loops ? graph.outputs.size() != results : graph.outputs.size() < results))
        return broken("node '" + std::string(node.name) + "' calls a subgraph of " + std::to_string(graph.inputs.size()) + " inputs and " +
                      std::to_string(graph.outputs.size()) + " outputs with " + std::to_string(branch.inputs.size()) + " and " + std::to_string(results));
    }
  }
  return {};
}

Status check_order(const ModelFile& file) {
  std::vector<size_t> known(file.tensors.size());  // the graph in which it is known, counted from 1
  for (size_t g = 0; g < file.graphs.size(); ++g) {
    const FileGraph& graph = file.graphs[g];
    const auto is_known = [&](uint32_t i) { return file.tensors[i].data || known[i] == g + 1; };
    for (uint32_t i : graph.inputs) {
      if (file.tensors[i].data) return broken("input tensor " + std::to_string(i) + " is a constant");
      known[i] = g + 1;
    }
    for (int n = graph.first; n < graph.last; ++n) {
      const FileNode& node = file.nodes[n];
      const std::string which = "node '" + std::string(node.name) + "'";
      for (uint32_t i : node.inputs)
        if (!is_known(i)) return broken(which + " reads tensor " + std::to_string(i) + " before it is made");
      for (uint32_t i : node.outputs) {
        if (is_known(i)) return broken(which + " writes tensor " + std::to_string(i) + ", which has a value already");
        known[i] = g + 1;
      }
    }
    for (uint32_t i : graph.outputs)
      if (!is_known(i)) return broken("output tensor " + std::to_string(i) + " is never made");
  }
  return {};
}

// Constants of float16 stand for float32 where they are used together with values of float32.
void find_halves(ModelFile* file) {
  for (const FileNode& node : file->nodes) {
    const auto is_float = [&](uint32_t i) { return !file->tensors[i].data && file->tensors[i].dtype == kDataType_FLOAT32; };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), is_float) && std::none_of(node.outputs.begin(), node.outputs.end(), is_float)) continue;
    for (const uint32_t i : node.inputs) {
      FileTensor& tensor = file->tensors[i];
      tensor.half = tensor.half || (tensor.data && tensor.dtype == kDataType_FLOAT16);
    }
  }
}

// Which axis the scales of weights belong to: MindSpore Lite has the one of the results of convolutions and products. Of a
// transposed convolution its versions have different ones: -1.
int axis_of_scales(const FileNode& node, size_t place, int rank) {
  if (node.kind == kOp_Conv2dTransposeFusion) return -1;
  if (node.kind != kOp_MatMulFusion) return 0;
  const bool transposed = node.attributes.get<uint8_t>(place ? kMatMulFusion_transpose_b : kMatMulFusion_transpose_a);
  return transposed == (place > 0) ? rank - 2 : rank - 1;
}

// Integers with scales are weights of nodes that say so.
Status find_scales(ModelFile* file) {
  const auto refuse = [&](uint32_t i, const std::string& why) {
    return Status(kNotSupported, "tensor " + std::to_string(i) + " '" + std::string(file->tensors[i].name) + "' is quantized, " + why);
  };
  for (const FileGraph& graph : file->graphs)
    for (const uint32_t i : graph.outputs)
      if (file->tensors[i].scales) return refuse(i, "but is an output");
  for (const FileNode& node : file->nodes) {
    for (size_t place = 0; place < node.inputs.size(); ++place) {
      const uint32_t i = node.inputs[place];
      const std::vector<int64_t>& shape = file->tensors[i].shape;
      Scales* scales = file->tensors[i].scales.get();
      if (!scales) continue;
      const std::string which = "node '" + std::string(node.name) + "' (" + name_of_operator(node.kind) + ")";
      if (!node.widens) return refuse(i, "which " + which + " does not compute yet");
      if (scales->scale.size() == 1) continue;
      const int axis = axis_of_scales(node, place, static_cast<int>(shape.size()));
      if (axis < 0 || axis >= static_cast<int>(shape.size()) || shape[axis] != static_cast<int64_t>(scales->scale.size()))
        return refuse(i, "but its " + std::to_string(scales->scale.size()) + " scales do not fit " + which);
      if (scales->axis >= 0 && scales->axis != axis) return refuse(i, "but the nodes that read it have its scales along different axes");
      scales->axis = axis;
    }
  }
  return {};
}

void find_cycles(ModelFile* file) {
  const size_t count = file->graphs.size();
  std::vector<std::vector<bool>> calls(count, std::vector<bool>(count)), reaches = calls;
  for (size_t g = 0; g < count; ++g)
    for (int n = file->graphs[g].first; n < file->graphs[g].last; ++n)
      for (const FileBranch& branch : file->nodes[n].branches) calls[g][branch.graph] = true;
  for (size_t g = 0; g < count; ++g) {
    std::vector<size_t> open{g};
    while (!open.empty()) {
      const size_t from = open.back();
      open.pop_back();
      for (size_t to = 0; to < count; ++to) {
        if (!calls[from][to] || reaches[g][to]) continue;
        reaches[g][to] = true;
        open.push_back(to);
      }
    }
  }
  for (size_t g = 0; g < count; ++g)
    for (size_t other = 0; other <= g && file->graphs[g].cycle < 0; ++other)
      if (reaches[g][other] && reaches[other][g]) file->graphs[g].cycle = static_cast<int>(other);
}

}  // namespace

Status read_graphs(const Table& root, ModelFile* file) {
  const TableSpan nodes = root.tables(kMetaGraph_nodes), graphs = root.tables(kMetaGraph_subGraph);
  Reader& reader = *file->reader;
  if (Status status = reveal(root, &file->revealed); !status) return status;
  if (graphs.size() > kMostGraphs)
    return {kNotSupported, "the model has " + std::to_string(graphs.size()) + " subgraphs, at most " + std::to_string(kMostGraphs) + " are supported"};
  file->graphs.resize(std::max<size_t>(graphs.size(), 1));
  GraphReader state{*file, {}};
  for (uint32_t g = 0; g < file->graphs.size(); ++g) {
    FileGraph& graph = file->graphs[g];
    std::vector<uint32_t> order;  // without subgraphs it is that of the nodes
    if (graphs.size()) {
      graph.name = graphs[g].text(kSubGraph_name);
      graph.inputs = indices(graphs[g].span<uint32_t>(kSubGraph_inputIndices));
      graph.outputs = indices(graphs[g].span<uint32_t>(kSubGraph_outputIndices));
      order = indices(graphs[g].span<uint32_t>(kSubGraph_nodeIndices));
    } else {
      for (uint32_t i = 0; i < nodes.size(); ++i) order.push_back(i);
    }
    if (g == 0) graph.inputs = file->inputs, graph.outputs = file->outputs;
    graph.first = static_cast<int>(file->nodes.size());
    state.functions.clear();
    for (uint32_t i : order) {
      if (i >= nodes.size())
        return broken("subgraph " + std::to_string(g) + " names node " + std::to_string(i) + " of " + std::to_string(nodes.size()));
      const Table table = nodes[i];
      const Table primitive = table.table(kCNode_primitive);
      FileNode node;
      node.name = table.text(kCNode_name);
      node.kind = primitive.get<uint8_t>(kPrimitive_value - 2);
      node.attributes = primitive.table(kPrimitive_value);
      node.inputs = indices(table.span<uint32_t>(kCNode_inputIndex));
      node.widens = table.get<int32_t>(kCNode_quantType) == kQuantType_QUANT_WEIGHT;
      node.outputs = indices(table.span<uint32_t>(kCNode_outputIndex));
      if (const auto hidden = file->revealed.nodes.find(i); hidden != file->revealed.nodes.end()) {
        if (!hidden->second.kind) continue;
        node.kind = hidden->second.kind;
        node.attributes = hidden->second.attributes;
        node.inputs.resize(std::min(node.inputs.size(), hidden->second.inputs));
      }
      bool prepares = false;
      Status status = node.attributes ? state.resolve(&node, &prepares) : broken("a node without an operator");
      if (!reader.ok()) return broken(reader.fault());
      if (file->revealed.reader && !file->revealed.reader->ok()) return broken(file->revealed.reader->fault());
      if (!status) return status;
      bool is_state = false;
      if (Status found = read_state(node, g == 0, file, &is_state); !found) return found;
      bool is_panels = false;
      if (Status found = read_panels(node, file, &is_panels); !found) return found;
      if (!prepares && !is_state && !is_panels) file->nodes.push_back(std::move(node));
    }
    graph.last = static_cast<int>(file->nodes.size());
  }
  for (const FileState& state : file->states) {
    if (!state.set) return broken("a variable is never set");
    file->graphs[0].inputs.push_back(state.tensor);
    file->graphs[0].outputs.push_back(state.next);
  }
  if (!reader.ok()) return broken(reader.fault());

  const auto within = [&](const std::vector<uint32_t>& all) {
    return std::all_of(all.begin(), all.end(), [&](uint32_t i) { return i < file->tensors.size(); });
  };
  bool fine = within(file->inputs) && within(file->outputs);
  for (const FileGraph& graph : file->graphs) fine = fine && within(graph.inputs) && within(graph.outputs);
  for (const FileNode& node : file->nodes) fine = fine && within(node.inputs) && within(node.outputs);
  if (!fine) return broken("an index of a tensor is beyond the " + std::to_string(file->tensors.size()) + " that there are");
  if (Status status = check_calls(*file); !status) return status;
  if (Status status = check_order(*file); !status) return status;
  if (Status status = find_scales(file); !status) return status;
  find_halves(file);
  find_cycles(file);
  return {};
}

}  // namespace mycelia::lite
