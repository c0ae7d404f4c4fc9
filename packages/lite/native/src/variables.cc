// What a model keeps from run to run, as its runs read and leave it.
#include <cstring>

#include "session.h"

namespace mycelia::lite {

Status Session::open_variables() {
  const ModelFile& file = source_->file;
  for (const GraphState& state : file.graphs[graph_].states) {
    reads_.push_back(state.variable);
    if (state.set) sets_.push_back(state.variable);
  }
  if (variables_) return {};
  variables_ = std::make_shared<Variables>();
  for (const FileState& state : file.states) {
    const FileTensor& tensor = file.tensors[state.tensor];
    Variable variable{{abi_dtype(tensor.dtype), tensor.shape}, Memory(state.first.size()), Memory()};
    if (!variable.now.data()) return {kMemory, "no memory for the variables"};
    const uint8_t* const first = reinterpret_cast<const uint8_t*>(state.first.data());
    std::memcpy(variable.now.data(), first, state.first.size());
    file.release(first, state.first.size());  // it is read again when the model is written
    variables_->push_back(std::move(variable));
  }
  return {};
}

void Session::add_variables(std::vector<Type>* types) const {
  for (const size_t i : reads_) types->push_back((*variables_)[i].type);
}

void Session::add_variables(std::vector<Execution::Argument>* arguments) const {
  for (const size_t i : reads_) arguments->push_back({(*variables_)[i].type, (*variables_)[i].now.data()});
}

uint8_t* Session::place_of(const Plan& plan, size_t output) {
  if (output < outputs_.size()) return outputs_[output].data;
  Variable& variable = (*variables_)[sets_[output - outputs_.size()]];
  if (output < plan.overwrites.size() && plan.overwrites[output]) return variable.now.data();
  if (!variable.next.data()) variable.next = Memory(variable.now.size());
  return variable.next.data();
}

void Session::keep_variables(const Plan& plan) {
  for (size_t i = 0; i < sets_.size(); ++i) {
    const size_t output = outputs_.size() + i;
    Variable& variable = (*variables_)[sets_[i]];
    if (output < plan.overwrites.size() && plan.overwrites[output]) continue;
    if (variable.now.size()) std::memcpy(variable.now.data(), variable.next.data(), variable.now.size());
  }
}

Status Session::check_states(const Plan& plan) const {
  for (const auto& [output, value] : plan.outputs) {
    if (static_cast<size_t>(output) < outputs_.size()) continue;
    const Type& type = (*variables_)[sets_[output - outputs_.size()]].type;
    const Type& next = plan.values[value].type;
    if (next.dtype != type.dtype || next.shape != type.shape)
      return {kInferFailed, message({"a run leaves ", text_of(next), " in a variable of ", text_of(type)})};
  }
  return {};
}

}  // namespace mycelia::lite
