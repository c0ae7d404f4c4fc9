// A model's plan for other processors, as arrays that any language reads.
#include "../schema.h"
#include "model.h"

using namespace mycelia::lite;

namespace mycelia::lite {

// What MSProgram points to.
struct Program {
  Packs packs;
  Pool pool;
  Plan plan;
  std::vector<std::string> node_names, node_types;  // of the steps
  std::vector<MSProgramValue> values;
  std::vector<MSProgramStep> steps;
  std::vector<int32_t> outputs;
  std::vector<const void*> states;
};

}  // namespace mycelia::lite

namespace {

// What keeps a plan from being all of a run; empty if nothing does.
std::string left_over(const ModelFile& file, const Plan& plan) {
  for (const Item& item : plan.rest)
    if (item.node >= 0) return node_text(file.nodes[item.node]) + "it depends on data: what runs, or how large results are, is known only while the model runs";
  for (const Activation& activation : plan.activations)
    if (activation.node >= 0) return node_text(file.nodes[activation.node]) + "it is a loop or a call that only the running model knows";
  return plan.rest.empty() && plan.activations.empty() ? "" : "an output depends on data";
}

void describe(const ModelFile& file, Program* program) {
  Plan& plan = program->plan;
  for (const Value& value : plan.values) {
    const size_t bytes = static_cast<size_t>(element_count(value.type.shape) * item_bytes(value.type.dtype));
    program->values.push_back({static_cast<MSDataType>(file_dtype(value.type.dtype)), value.type.shape.data(), value.type.shape.size(), value.constant,
                               bytes, value.root, value.offset});
  }
  program->node_names.reserve(plan.steps.size()), program->node_types.reserve(plan.steps.size());  // steps point to them
  for (const Step& step : plan.steps) {
    program->node_names.push_back(step.node < 0 ? "" : std::string(file.nodes[step.node].name));
    program->node_types.push_back(step.node < 0 ? "" : name_of_operator(file.nodes[step.node].kind));
    program->steps.push_back({step.kernel ? step.op : "copy", program->node_names.back().c_str(), program->node_types.back().c_str(),
                              step.attributes.data(), step.attributes.size(), step.inputs.data(), step.inputs.size(), step.outputs.data(), step.outputs.size()});
  }
  program->outputs.assign(plan.outputs.size(), -1);
  for (const auto& [output, value] : plan.outputs) program->outputs[output] = value;
  for (const FileState& state : file.states) program->states.push_back(state.first.data());
}

}  // namespace

MSStatus MSModelGetProgram(MSModelHandle handle, MSProgram* made) {
  const auto model = find<Model>(handle);
  if (!model) return refused(kNullPointer, "the model is NULL or was freed");
  if (!model->built) return refused(kParameterInvalid, "the model is not built");
  if (!made) return refused(kNullPointer, "the program is NULL");
  return alone(*model->session, [&] {
    if (model->training) return Status(kNotSupported, "the model learns on the device: export it for inference");
    auto program = std::make_shared<Program>();
    if (Status status = model->session->plan_portably(&program->packs, &program->pool, &program->plan); !status) return status;
    const ModelFile& file = model->session->source()->file;
    if (const std::string why = left_over(file, program->plan); !why.empty()) return Status(kNotSupported, why);
    describe(file, program.get());
    *made = {program->values.data(), program->values.size(), program->steps.data(), program->steps.size(), program->plan.inputs.data(),
             program->plan.inputs.size(), program->outputs.data(), program->outputs.size(), program->states.data(), program->states.size()};
    model->program = std::move(program);
    return Status();
  });
}
