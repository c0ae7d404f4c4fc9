// Models that learn.
#include "../training.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "model.h"

using namespace mycelia::lite;

namespace {

constexpr std::initializer_list<FileState::Role> kWeights = {FileState::kTrained, FileState::kStatistic}, kTrained = {FileState::kTrained},
                                                 kOptimizer = {FileState::kOptimizer, FileState::kRate, FileState::kMomentum};

template <class Body>
MSStatus trained(MSModelHandle handle, const Body& body) {
  return of_built(handle, [&](Model& model) {
    if (!model.training) return Status(kNotSupported, "the model is for inference alone: convert a training step with trainModel=true");
    return body(model);
  });
}

// Tensors of variables with these roles; the array lives until the thread's next call.
MSTensorHandleArray variables_of(MSModelHandle handle, std::initializer_list<FileState::Role> roles) {
  thread_local std::vector<MSTensorHandle> found;
  found.clear();
  const auto model = find<Model>(handle);
  trained(handle, [&](Model& own) {
    const std::lock_guard<std::mutex> lock(own.publishing);
    if (own.freed) return Status(kNullPointer, "the model was freed");
    if (own.weights.all().empty())
      for (const auto& weight : own.training->weights()) own.weights.add({model, weight.get()});
    for (const size_t i : own.training->variables_of(roles)) found.push_back(own.weights.all()[i]);
    return Status();
  });
  return {found.size(), found.data()};
}

Status check_export(Model& model, MSModelType type, MSQuantizationType quantization, const char* const* names, size_t count) {
  if (type != kMSModelTypeMindIRLite && type != kMSModelTypeMindIR) return {kNotSupported, message({"model type ", type, " cannot be written: expected 4, MindIR_Lite"})};
  if (quantization != kMSNO_QUANT)
    return {kNotSupported, "the runtime writes weights as they are: mycelia-lite convert --fmk=MSLITE quantizes a model for inference"};
  if (!count) return {};
  if (!names) return {kNullPointer, "the list of output names is NULL"};
  const Handles& outputs = model.training->trains() ? model.outputs : model.answers;
  bool all = count == outputs.all().size();
  for (size_t i = 0; i < count && all; ++i) {
    const auto tensor = find<Border>(outputs.all()[i]);
    all = names[i] && tensor && tensor->name == names[i];
  }
  return all ? Status() : Status(kNotSupported, "a model is written with all of its outputs: give their names in order, or none");
}

}  // namespace

MSStatus MSModelSetTrainMode(MSModelHandle handle, bool train) {
  return trained(handle, [&](Model& model) { return model.training->set_trains(train); });
}
bool MSModelGetTrainMode(MSModelHandle handle) {
  bool trains = false;
  trained(handle, [&](Model& model) { return trains = model.training->trains(), Status(); });
  return trains;
}

MSStatus MSModelSetLearningRate(MSModelHandle handle, float learning_rate) {
  return trained(handle, [&](Model& model) { return model.training->set_rate(learning_rate); });
}
float MSModelGetLearningRate(MSModelHandle handle) {
  float rate = NAN;
  trained(handle, [&](Model& model) { return model.training->rate(&rate); });
  return rate;
}
MSStatus MSModelSetupVirtualBatch(MSModelHandle handle, int32_t virtual_batch_multiplier, float lr, float momentum) {
  return trained(handle, [&](Model& model) { return model.training->set_virtual_batch(virtual_batch_multiplier, lr, momentum); });
}

MSTensorHandleArray MSModelGetWeights(MSModelHandle handle) { return variables_of(handle, kWeights); }
MSTensorHandleArray MSModelGetTrainableParams(MSModelHandle handle) { return variables_of(handle, kTrained); }
MSTensorHandleArray MSModelGetOptimizerParams(MSModelHandle handle) { return variables_of(handle, kOptimizer); }

MSTensorHandleArray MSModelGetGradients(MSModelHandle handle) {
  MSTensorHandleArray found{0, nullptr};
  const auto model = find<Model>(handle);
  trained(handle, [&](Model& own) {
    std::vector<Border*> gradients;
    if (Status status = own.training->gradients(&gradients); !status) return status;
    const std::lock_guard<std::mutex> lock(own.publishing);
    if (own.freed) return Status(kNullPointer, "the model was freed");
    if (own.gradients.all().empty())
      for (Border* gradient : gradients) own.gradients.add({model, gradient});
    found = own.gradients.array();
    return Status();
  });
  return found;
}
MSStatus MSModelApplyGradients(MSModelHandle handle, MSTensorHandleArray gradients) {
  return trained(handle, [&](Model& model) {
    std::vector<std::shared_ptr<Border>> given;
    if (Status status = tensors_of(gradients, "gradient", &given); !status) return status;
    std::vector<const Border*> tensors;
    for (const auto& tensor : given) tensors.push_back(tensor.get());
    return model.training->apply(tensors);
  });
}

MSStatus MSExportModel(MSModelHandle handle, MSModelType type, const char* model_file, MSQuantizationType quantization, bool inference_only,
                       const char* const* output_names, size_t output_num) {
  if (!model_file) return refused(kNullPointer, "model_file is NULL");
  return trained(handle, [&](Model& model) {
    if (Status status = check_export(model, type, quantization, output_names, output_num); !status) return status;
    return model.training->save(inference_only, model_file);
  });
}
MSStatus MSExportModelBuffer(MSModelHandle handle, MSModelType type, char** data, size_t* data_size, MSQuantizationType quantization,
                             bool inference_only, const char* const* output_names, size_t output_num) {
  if (!data || !data_size) return refused(kNullPointer, "the place for the data or its size is NULL");
  return trained(handle, [&](Model& model) {
    std::string bytes;
    if (Status status = check_export(model, type, quantization, output_names, output_num); !status) return status;
    if (Status status = model.training->write(inference_only, &bytes); !status) return status;
    char* const made = static_cast<char*>(std::malloc(bytes.size()));
    if (!made) return Status(kMemory, message({"no memory for the ", bytes.size(), " bytes of a model"}));
    std::memcpy(made, bytes.data(), bytes.size());
    *data = made, *data_size = bytes.size();
    return Status();
  });
}
void MSFreeBuffer(char* data) { std::free(data); }
