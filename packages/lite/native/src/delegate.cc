#include "delegate.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "schema.h"

namespace mycelia::lite {

namespace {

// Descriptions for one run: what a kernel writes to them is gone afterwards.
std::vector<MSDelegateTensor> pointed(const std::vector<MSDelegateTensor>& described, const myc_tensor* const* tensors) {
  std::vector<MSDelegateTensor> made = described;
  for (size_t i = 0; i < made.size(); ++i)
    if (const myc_tensor* const t = tensors[i]) made[i].data = t->data, made[i].shape = t->shape;  // null: left out
  return made;
}

bool same(const MSDelegateTensor& a, const MSDelegateTensor& b) {
  return a.name == b.name && a.data_type == b.data_type && a.shape == b.shape && a.shape_num == b.shape_num && a.data == b.data && a.data_size == b.data_size;
}

}  // namespace

int32_t run_outside(const myc_call* call) {
  OutsideKernel* outside;
  std::memcpy(&outside, call->attrs, sizeof(outside));
  const std::vector<MSDelegateTensor> inputs = pointed(outside->inputs, call->in), expected = pointed(outside->outputs, call->out);
  std::vector<MSDelegateTensor> outputs = expected;
  const MSDelegateKernel& kernel = outside->kernel;
  const MSStatus status = without_throwing([&] { return kernel.run(kernel.user, inputs.data(), inputs.size(), outputs.data(), outputs.size()); }, kThrown);
  if (status == kMSStatusSuccess && std::equal(outputs.begin(), outputs.end(), expected.begin(), same)) return MYC_OK;
  const std::string how = status == kMSStatusSuccess ? "changed the type, shape or place of an output" : text_of(status);
  std::snprintf(call->ctx->error, sizeof(call->ctx->error), "%s %s", outside->who.c_str(), how.c_str());
  return MYC_E_ARGUMENT;
}

std::string text_of(MSStatus status) { return status == kThrown ? "threw an exception" : "failed with code " + std::to_string(status); }

void free_outside(void (*destroy)(void*), void* user) {
  if (destroy) without_throwing([&] { return destroy(user), true; }, false);  // there is nobody to tell
}

std::vector<uint8_t> attributes_of(const OutsideKernel* kernel) {
  std::vector<uint8_t> bytes(sizeof(kernel));
  std::memcpy(bytes.data(), &kernel, sizeof(kernel));
  return bytes;
}

MSDelegateTensor described(const Value& value, const std::string& name) {
  const int32_t dtype = value.stored ? abi_dtype(value.stored->dtype) : value.type.dtype;
  return {name.c_str(), static_cast<MSDataType>(file_dtype(dtype)), value.type.shape.data(), value.type.shape.size(),
          const_cast<uint8_t*>(value.constant), static_cast<size_t>(element_count(value.type.shape) * item_bytes(dtype))};
}

void Planner::delegate_steps() {
  std::vector<NodeRun>& nodes = plan_.nodes;
  std::vector<std::string> where(nodes.size(), "CPU"), why(nodes.size());
  std::vector<bool> taken(nodes.size());
  std::vector<int> partition_of(nodes.size(), -1);
  std::vector<std::shared_ptr<OutsideKernel>> partitions;

  // Which values a run of nodes makes that others read, and which it reads.
  const auto borders = [&](size_t first, size_t count, std::vector<int>* in, std::vector<int>* out) {
    std::vector<bool> made(plan_.values.size()), read = needed_later(), step_inside(plan_.steps.size());
    for (size_t n = first; n < first + count; ++n) {
      for (int s = nodes[n].first; s < nodes[n].last; ++s) step_inside[s] = true;
      for (int v : nodes[n].inputs)
        if (v >= 0 && !plan_.values[v].constant && !made[plan_.values[v].root] && std::find(in->begin(), in->end(), v) == in->end()) in->push_back(v);
      for (int v : nodes[n].outputs) made[v] = true;
    }
    for (size_t s = 0; s < plan_.steps.size(); ++s)
      for (int v : plan_.steps[s].inputs)
        if (v >= 0 && !step_inside[s]) read[plan_.values[v].root] = true;
    for (const auto& [output, v] : plan_.outputs) read[v] = true;
    bool fine = true;
    for (size_t n = first; n < first + count; ++n) {
      for (int v : nodes[n].outputs) {
        if (v < 0) continue;
        const Value& value = plan_.values[v];
        if (!read[value.root] && !value.outside) continue;
        fine = fine && value.root == v && !value.constant;  // a view of what is not the run's has no memory to write to
        out->push_back(v);
      }
    }
    return fine;
  };

  for (const std::shared_ptr<Delegate>& delegate : *plan_.delegates) {
    const auto offered = std::make_shared<MSDelegateModel>();
    MSDelegateModel& model = *offered;
    model.taken = taken;
    model.reasons.resize(nodes.size());
    for (const NodeRun& run : nodes) model.nodes.emplace_back(file_, file_.nodes[run.node]);
    for (size_t n = 0; n < nodes.size(); ++n) model.nodes[n]->describe(plan_, nodes[n].inputs, nodes[n].outputs);  // they lie where they stay
    model.check = [&](size_t first, size_t count) {
      std::vector<int> in, out;
      return borders(first, count, &in, &out) ? Status() : Status(kNotSupported, "a result of these nodes is a constant, or shares the memory of a value that others make");
    };
    void* const handle = publish(offered);
    const MSDelegateCallbacks& calls = delegate->calls;
    const MSStatus status = without_throwing([&] { return calls.build(calls.user, static_cast<MSDelegateModel*>(handle)); }, kThrown);
    withdraw<MSDelegateModel>(handle);
    for (const OfferedNode& node : model.nodes) node->forget_tensors();
    const auto kept = std::make_shared<std::vector<OfferedNode>>(std::move(model.nodes));
    for (const MSDelegateModel::Claim& claim : model.claims) {
      auto partition = std::make_shared<OutsideKernel>();
      partition->kernel = claim.kernel;
      partition->who = "the delegate " + delegate->name;
      partition->owner = kept;
      for (size_t n = claim.first; n < claim.first + claim.count; ++n) partition_of[n] = static_cast<int>(partitions.size());
      partitions.push_back(std::move(partition));
    }
    if (status != kMSStatusSuccess) {
      fail(kError, "the delegate " + delegate->name + " " + text_of(status));
      return;
    }
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (model.taken[n] && !taken[n]) where[n] = delegate->name, why[n] = model.reasons[n];
      else if (!model.reasons[n].empty()) why[n] += (why[n].empty() ? "" : "; ") + delegate->name + ": " + model.reasons[n];
    }
    taken = model.taken;
  }

  // One step for each partition, in place of its first node's.
  std::vector<Step> steps;
  std::vector<int> owner(plan_.steps.size(), -1);
  std::vector<Step> made(partitions.size());
  int64_t copied = 0;
  for (size_t p = 0; p < partitions.size(); ++p) {
    size_t first = 0, count = 0;
    for (size_t n = 0; n < nodes.size(); ++n)
      if (partition_of[n] == static_cast<int>(p)) first = count++ ? first : n;
    std::vector<int> in, out;
    borders(first, count, &in, &out);
    for (size_t n = first; n < first + count; ++n)
      for (int s = nodes[n].first; s < nodes[n].last; ++s) owner[s] = static_cast<int>(p);
    OutsideKernel& partition = *partitions[p];
    const auto name_of = [&](int v) {
      for (size_t n = first; n < first + count; ++n) {
        const FileNode& file = file_.nodes[nodes[n].node];
        for (size_t i = 0; i < nodes[n].inputs.size(); ++i)
          if (nodes[n].inputs[i] == v) return std::string(file_.tensors[file.inputs[i]].name);
        for (size_t i = 0; i < nodes[n].outputs.size(); ++i)
          if (nodes[n].outputs[i] == v) return std::string(file_.tensors[file.outputs[i]].name);
      }
      return std::string();
    };
    for (const std::vector<int>* side : {&in, &out})
      for (int v : *side) partition.names.push_back(name_of(v));
    for (size_t i = 0; i < in.size(); ++i) partition.inputs.push_back(described(plan_.values[in[i]], partition.names[i]));
    for (size_t i = 0; i < out.size(); ++i) partition.outputs.push_back(described(plan_.values[out[i]], partition.names[in.size() + i]));
    for (const std::vector<MSDelegateTensor>* side : {&partition.inputs, &partition.outputs})
      for (const MSDelegateTensor& t : *side) copied += static_cast<int64_t>(t.data_size);
    Step& step = made[p];
    step.kernel = run_outside;
    step.op = "delegate";
    step.attributes = attributes_of(partitions[p].get());
    step.inputs = std::move(in);
    step.outputs = std::move(out);
    step.node = nodes[first].node;
    plan_.kept.push_back(partitions[p]);
  }
  std::vector<bool> placed(partitions.size());
  std::vector<int> place(plan_.steps.size() + 1);
  for (size_t n = 0, s = 0; s <= plan_.steps.size(); ++s) {
    // A partition whose nodes have no steps begins where its first node would.
    for (; n < nodes.size() && nodes[n].first <= static_cast<int>(s); ++n) {
      const int p = partition_of[n];
      if (p < 0 || placed[p]) continue;
      placed[p] = true;
      for (size_t m = n; m < nodes.size() && partition_of[m] == p; ++m) place[nodes[m].first] = static_cast<int>(steps.size());
      steps.push_back(std::move(made[p]));
    }
    place[s] = static_cast<int>(steps.size());
    if (s < plan_.steps.size() && owner[s] < 0) steps.push_back(std::move(plan_.steps[s]));
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    NodeRun& node = nodes[n];
    node.first = place[node.first], node.last = place[node.last];
    if (partition_of[n] >= 0) {  // the step is that of its last node, when all inputs are there and all outputs follow
      const bool last = n + 1 == nodes.size() || partition_of[n + 1] != partition_of[n];
      node.first = last ? node.first - 1 : node.first;
    }
  }
  plan_.steps = std::move(steps);
  for (size_t n = 0; n < nodes.size(); ++n) {
    const FileNode& file = file_.nodes[nodes[n].node];
    plan_.partition += "node '" + std::string(file.name) + "' (" + name_of_operator(file.kind) + "): " + where[n] + (why[n].empty() ? "" : ", " + why[n]) + "\n";
  }
  plan_.partition += std::to_string(partitions.size()) + " partitions, " + std::to_string(copied) + " bytes at their borders in a run\n";
}

}  // namespace mycelia::lite

MSDelegateNode::MSDelegateNode(const mycelia::lite::ModelFile& file, const mycelia::lite::FileNode& given)
    : node(&given), name(given.name), type(mycelia::lite::name_of_operator(given.kind)) {
  if (given.kind == mycelia::lite::schema::kOp_Custom) custom_type = given.attributes.text(mycelia::lite::schema::kCustom_type);
  for (uint32_t t : given.inputs) input_names.emplace_back(file.tensors[t].name);
  for (uint32_t t : given.outputs) output_names.emplace_back(file.tensors[t].name);
}
void MSDelegateNode::describe(const mycelia::lite::Plan& plan, const std::vector<int>& in, const std::vector<int>& out) {
  const auto all = [&](const std::vector<int>& values, const std::vector<std::string>& names, std::vector<MSDelegateTensor>* tensors) {
    tensors->clear();
    for (size_t i = 0; i < values.size(); ++i) {
      tensors->push_back(values[i] < 0 ? MSDelegateTensor{} : mycelia::lite::described(plan.values[values[i]], names[i]));
      tensors->back().name = names[i].c_str();
    }
  };
  all(in, input_names, &inputs);
  all(out, output_names, &outputs);
}
