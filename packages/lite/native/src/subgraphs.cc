// Subgraphs that nodes call: by PartialFusion, Switch, SwitchLayer and Call, or as the body of a loop.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "kernels.h"
#include "model_file.h"
#include "schema.h"

namespace mycelia::lite {

namespace {

using namespace schema;

// What the output of a PartialFusion, Switch or SwitchLayer stands for.
struct Function {
  std::vector<uint32_t> condition;  // one tensor, or none
  std::vector<FileBranch> branches;
  bool by_number = false;
};

struct GraphReader {
  const ModelFile& file;
  std::unordered_map<uint32_t, Function> functions;  // of the graph at work, by tensor

  // `node` as it runs; `prepares` if it only makes a function that others call.
  Status resolve(FileNode* node, bool* prepares) {
    *prepares = node->kind == kOp_PartialFusion || node->kind == kOp_Switch || node->kind == kOp_SwitchLayer;
    const std::string which = "node '" + std::string(node->name) + "' (" + name_of_operator(node->kind) + ")";
    if (node->kind == kOp_PartialFusion) {
      const int64_t graph = node->attributes.get<int64_t>(kPartialFusion_sub_graph_index);
      if (graph < 0 || graph >= static_cast<int64_t>(file.graphs.size()) || node->outputs.size() != 1)
        return broken(which + " stands for subgraph " + std::to_string(graph) + " of " + std::to_string(file.graphs.size()));
      functions[node->outputs[0]] = {{}, {{static_cast<int>(graph), node->inputs}}};
    } else if (*prepares) {
      Function some;
      some.by_number = node->kind == kOp_SwitchLayer;
      for (size_t i = 1; i < node->inputs.size(); ++i) {
        const auto found = functions.find(node->inputs[i]);
        if (found == functions.end() || found->second.branches.size() != 1) break;
        some.branches.push_back(found->second.branches[0]);
      }
      if (some.branches.size() + 1 != node->inputs.size() || node->outputs.size() != 1 || (some.by_number ? some.branches.empty() : some.branches.size() != 2))
        return {kNotSupported, which + (some.by_number ? ": expected a number and the subgraphs of PartialFusions" : ": expected a condition and the subgraphs of two PartialFusions")};
      some.condition = {node->inputs[0]};
      functions[node->outputs[0]] = std::move(some);
    } else if (node->kind == kOp_Call) {
      const auto found = node->inputs.empty() ? functions.end() : functions.find(node->inputs[0]);
      if (found == functions.end()) return {kNotSupported, which + ": its first input is no PartialFusion, Switch or SwitchLayer of the same subgraph"};
      const std::vector<uint32_t> more(node->inputs.begin() + 1, node->inputs.end());
      node->inputs = found->second.condition;
      node->branches = found->second.branches;
      node->by_number = found->second.by_number;
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

Status resolve_calls(int first, ModelFile* file) {
  ask_for_part("control");
  GraphReader reader{*file, {}};
  std::vector<FileNode>& nodes = file->nodes;
  size_t left = static_cast<size_t>(first);
  for (size_t n = left; n < nodes.size(); ++n) {
    bool prepares = false;
    if (Status status = reader.resolve(&nodes[n], &prepares); !status) return status;
    if (prepares) continue;
    if (left != n) nodes[left] = std::move(nodes[n]);
    ++left;
  }
  nodes.resize(left);
  return {};
}

Status check_calls(ModelFile* file) {
  for (const FileNode& node : file->nodes) {
    for (const FileBranch& branch : node.branches) {
      const FileGraph& graph = file->graphs[branch.graph];
      const size_t results = node.loops ? node.outputs.size() + 1 : node.outputs.size();
      if (graph.inputs.size() != branch.inputs.size() || (node.loops ? graph.outputs.size() != results : graph.outputs.size() < results))
        return broken("node '" + std::string(node.name) + "' calls a subgraph of " + std::to_string(graph.inputs.size()) + " inputs and " +
                      std::to_string(graph.outputs.size()) + " outputs with " + std::to_string(branch.inputs.size()) + " and " + std::to_string(results));
    }
  }
  find_cycles(file);
  return {};
}

}  // namespace mycelia::lite
