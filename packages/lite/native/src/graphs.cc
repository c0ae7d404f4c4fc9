// Nodes and subgraphs of a file: what calls what, and whether each value is there before it is read.
#include <algorithm>

#include "model_file.h"
#include "schema.h"

namespace mycelia::lite {

namespace {

using namespace schema;

// Whether it calls a subgraph, or prepares that.
bool is_call(const FileNode& node) {
  if (node.kind == kOp_Custom) return node.attributes.text(kCustom_type) == "Loop";
  return node.kind == kOp_PartialFusion || node.kind == kOp_Switch || node.kind == kOp_SwitchLayer || node.kind == kOp_Call;
}

Status check_order(const ModelFile& file) {
  std::vector<size_t> known(file.tensors.size());  // the graph in which it is known, counted from 1
  for (size_t g = 0; g < file.graphs.size(); ++g) {
    const FileGraph& graph = file.graphs[g];
    const auto is_known = [&](uint32_t i) { return file.tensors[i].data || known[i] == g + 1; };
    for (uint32_t i : graph.inputs) {
      if (file.tensors[i].data) return broken(message({"input tensor ", i, " is a constant"}));
      known[i] = g + 1;
    }
    for (int n = graph.first; n < graph.last; ++n) {
      const FileNode& node = file.nodes[n];
      const std::string which = message({"node '", node.name, "'"});
      for (uint32_t i : node.inputs)
        if (!is_known(i)) return broken(message({which, " reads tensor ", i, " before it is made"}));
      for (uint32_t i : node.outputs) {
        if (is_known(i)) return broken(message({which, " writes tensor ", i, ", which has a value already"}));
        known[i] = g + 1;
      }
    }
    for (uint32_t i : graph.outputs)
      if (!is_known(i)) return broken(message({"output tensor ", i, " is never made"}));
  }
  return {};
}

// Constants of float16 and bfloat16 stand for float32 where they are used together with values of float32.
void find_halves(ModelFile* file) {
  for (const FileNode& node : file->nodes) {
    const auto is_float = [&](uint32_t i) { return !file->tensors[i].data && file->tensors[i].dtype == kDataType_FLOAT32; };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), is_float) && std::none_of(node.outputs.begin(), node.outputs.end(), is_float)) continue;
    for (const uint32_t i : node.inputs) {
      FileTensor& tensor = file->tensors[i];
      tensor.half = tensor.half || (tensor.data && (tensor.dtype == kDataType_FLOAT16 || tensor.dtype == kDataType_BFLOAT16));
    }
  }
}

}  // namespace

Status read_graphs(const Table& root, ModelFile* file) {
  const TableSpan nodes = root.tables(kMetaGraph_nodes), graphs = root.tables(kMetaGraph_subGraph);
  Reader& reader = *file->reader;
  if (Status status = reveal(root, &file->revealed); !status) return status;
  if (graphs.size() > kMostGraphs)
    return {kNotSupported, message({"the model has ", graphs.size(), " subgraphs, at most ", kMostGraphs, " are supported"})};
  file->graphs.resize(std::max<size_t>(graphs.size(), 1));
  bool calls = false;
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
    bool calls_here = false;
    for (uint32_t i : order) {
      if (i >= nodes.size())
        return broken(message({"subgraph ", g, " names node ", i, " of ", nodes.size()}));
      const Table table = nodes[i];
      const Table primitive = table.table(kCNode_primitive);
      FileNode node;
      node.name = table.text(kCNode_name);
      node.kind = primitive.get<uint8_t>(kPrimitive_value - 2);
      node.attributes = primitive.table(kPrimitive_value);
      node.inputs = indices(table.span<uint32_t>(kCNode_inputIndex));
      const int32_t quantized = table.get<int32_t>(kCNode_quantType);
      node.widens = quantized == kQuantType_QUANT_WEIGHT;
      node.of_integers = quantized == kQuantType_QUANT_ALL || quantized == kQuantType_QUANT_DYNAMIC;
      node.outputs = indices(table.span<uint32_t>(kCNode_outputIndex));
      if (const auto hidden = file->revealed.nodes.find(i); hidden != file->revealed.nodes.end()) {
        if (!hidden->second.kind) continue;
        node.kind = hidden->second.kind;
        node.attributes = hidden->second.attributes;
        node.inputs.resize(std::min(node.inputs.size(), hidden->second.inputs));
      }
      if (!reader.ok()) return broken(reader.fault());
      if (file->revealed.reader && !file->revealed.reader->ok()) return broken(file->revealed.reader->fault());
      if (!node.attributes) return broken("a node without an operator");
      calls_here = calls_here || is_call(node);
      bool is_state = false;
      if (Status found = read_state(node, g, file, &is_state); !found) return found;
      bool is_panels = false;
      if (Status found = read_panels(node, file, &is_panels); !found) return found;
      bool is_low_bit = false;
      if (Status found = read_low_bit(node, file, &is_low_bit); !found) return found;
      if (!is_state && !is_panels && !is_low_bit) file->nodes.push_back(std::move(node));
    }
    if (calls_here) {
      if (Status status = resolve_calls(graph.first, file); !status) return status;
      if (!reader.ok()) return broken(reader.fault());
      calls = true;
    }
    graph.last = static_cast<int>(file->nodes.size());
  }
  for (FileGraph& graph : file->graphs) graph.own_inputs = graph.inputs.size(), graph.own_outputs = graph.outputs.size();
  if (!file->states.empty())
    if (Status status = bind_states(file); !status) return status;
  if (!reader.ok()) return broken(reader.fault());

  const auto within = [&](const std::vector<uint32_t>& all) {
    return std::all_of(all.begin(), all.end(), [&](uint32_t i) { return i < file->tensors.size(); });
  };
  bool fine = within(file->inputs) && within(file->outputs);
  for (const FileGraph& graph : file->graphs) fine = fine && within(graph.inputs) && within(graph.outputs);
  for (const FileNode& node : file->nodes) fine = fine && within(node.inputs) && within(node.outputs);
  if (!fine) return broken(message({"an index of a tensor is beyond the ", file->tensors.size(), " that there are"}));
  if (calls)
    if (Status status = check_calls(file); !status) return status;
  if (Status status = check_order(*file); !status) return status;
  if (Status status = find_scales(file); !status) return status;
  find_halves(file);
  return {};
}

}  // namespace mycelia::lite
