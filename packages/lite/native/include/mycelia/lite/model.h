// The Lite runtime in C++: MindSpore Lite's classes over the C interface (c_api.h). Header only, C++17.
#ifndef MYCELIA_LITE_MODEL_H_
#define MYCELIA_LITE_MODEL_H_

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mycelia/lite/context.h"

namespace mycelia {

enum ModelType : int { kMindIR = 0, kAIR = 1, kOM = 2, kONNX = 3, kMindIR_Lite = 4, kUnknownType = -1 };

// A node that is about to run or has run.
struct MSCallBackParam {
  std::string node_name, node_type;
};
// False ends the run.
using MSKernelCallBack = std::function<bool(const std::vector<MSTensor>& inputs, const std::vector<MSTensor>& outputs, const MSCallBackParam& node)>;

enum QuantizationType : int { kNoQuant = 0, kWeightQuant = 1, kFullQuant = 2, kUnknownQuantType = 0xff };
enum OptimizationLevel : int { kO0 = 0, kO2 = 2, kO3 = 3, kAuto = 4 };

class Model;

// How a model is trained: what is not there is refused by Model::Build.
struct TrainCfg {
  OptimizationLevel optimization_level_ = kO0;  // float32; others are mixed precision, which is not there
  bool accumulate_gradients_ = false;  // GetGradients has those of each step
};

// The bytes of a model, for Model::Build.
class Graph {
 public:
  const std::string& bytes() const { return bytes_; }

 private:
  friend class Serialization;
  std::string bytes_;
};

class Serialization {
 public:
  static Status Load(const void* model_data, size_t data_size, ModelType, Graph* graph) {
    graph->bytes_.assign(static_cast<const char*>(model_data), data_size);
    return {};
  }
  static Status Load(const std::string& file, ModelType, Graph* graph) {
    std::FILE* const opened = std::fopen(file.c_str(), "rb");
    if (!opened) return {kLiteParamInvalid, "cannot open '" + file + "'"};
    graph->bytes_.clear();
    char block[65536];
    for (size_t n; (n = std::fread(block, 1, sizeof(block), opened)) > 0;) graph->bytes_.append(block, n);
    const bool fine = !std::ferror(opened);
    std::fclose(opened);
    return fine ? Status() : Status(kLiteError, "cannot read '" + file + "'");
  }
  // A model for inference, or one to train on, with what `model` learned. The path has the old file or the new one, whole. `output_names`: none,
  // or those of all outputs.
  static Status ExportModel(const Model& model, ModelType type, const std::string& file, QuantizationType quantization = kNoQuant,
                            bool export_inference_only = true, const std::vector<std::string>& output_names = {});
  // The same in memory.
  static Status ExportModel(const Model& model, ModelType type, std::string* bytes, QuantizationType quantization = kNoQuant,
                            bool export_inference_only = true, const std::vector<std::string>& output_names = {});
};

// A graph to train.
class GraphCell {
 public:
  explicit GraphCell(Graph graph) : graph_(std::move(graph)) {}
  const Graph& GetGraph() const { return graph_; }

 private:
  Graph graph_;
};

namespace detail {

inline std::vector<MSTensorHandle> handles_of(const std::vector<MSTensor>& tensors) {
  std::vector<MSTensorHandle> handles;
  for (const MSTensor& t : tensors) handles.push_back(t.handle());
  return handles;
}
inline std::vector<MSTensor> tensors_of(const MSTensorHandleArray& array) {
  std::vector<MSTensor> tensors;
  for (size_t i = 0; i < array.handle_num; ++i) tensors.emplace_back(array.handle_list[i]);
  return tensors;
}
struct CallBacks {
  const MSKernelCallBack *before, *after;
  static bool Before(void* user, MSTensorHandleArray inputs, MSTensorHandleArray outputs, MSCallBackParamC node) {
    return (*static_cast<CallBacks*>(user)->before)(tensors_of(inputs), tensors_of(outputs), {node.node_name, node.node_type});
  }
  static bool After(void* user, MSTensorHandleArray inputs, MSTensorHandleArray outputs, MSCallBackParamC node) {
    return (*static_cast<CallBacks*>(user)->after)(tensors_of(inputs), tensors_of(outputs), {node.node_name, node.node_type});
  }
};

}  // namespace detail

// A `.ms` file that can be run.
class Model {
 public:
  Model() : handle_(MSModelCreate()) {}
  ~Model() { MSModelDestroy(&handle_); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  Status Build(const void* model_data, size_t data_size, ModelType type = kMindIR_Lite, const std::shared_ptr<Context>& context = nullptr) {
    return Built(context, [&](MSContextHandle c) { return MSModelBuild(handle_, model_data, data_size, static_cast<MSModelType>(type), c); });
  }
  Status Build(const std::string& model_path, ModelType type = kMindIR_Lite, const std::shared_ptr<Context>& context = nullptr) {
    return Built(context, [&](MSContextHandle c) { return MSModelBuildFromFile(handle_, model_path.c_str(), static_cast<MSModelType>(type), c); });
  }
  Status Build(const Graph& graph, const std::shared_ptr<Context>& context = nullptr) {
    return Build(graph.bytes().data(), graph.bytes().size(), kMindIR_Lite, context);
  }
  // An encrypted file; `dec_key` has 16, 24 or 32 bytes.
  Status Build(const std::string& model_path, ModelType type, const std::shared_ptr<Context>& context, const std::string& dec_key,
               const std::string& dec_mode = "AES-GCM") {
    return Built(context, [&](MSContextHandle c) {
      return MSModelBuildFromEncryptedFile(handle_, model_path.c_str(), static_cast<MSModelType>(type), c, dec_key.data(), dec_key.size(), dec_mode.c_str());
    });
  }
  // The file of another model once more: both share weights and packed constants.
  Status Build(const Model& other, const std::shared_ptr<Context>& context = nullptr) {
    return Built(context, [&](MSContextHandle c) { return MSModelBuildFromModel(handle_, other.handle_, c); });
  }
  // Before this one is built: both compute in the same memory, and run one at a time.
  Status ShareWorkspace(const Model& other) { return MSModelShareWorkspace(handle_, other.handle_); }
  // Settings before the model is built.
  Status LoadConfig(const std::string& config_path) { return MSModelLoadConfig(handle_, config_path.c_str()); }
  Status UpdateConfig(const std::string& section, const std::pair<std::string, std::string>& config) {
    return MSModelUpdateConfig(handle_, section.c_str(), config.first.c_str(), config.second.c_str());
  }
  Status Resize(const std::vector<MSTensor>& inputs, const std::vector<std::vector<int64_t>>& dims) {
    std::vector<MSShapeInfo> shapes(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      shapes[i].shape_num = dims[i].size();
      for (size_t d = 0; d < dims[i].size() && d < MS_MAX_SHAPE_NUM; ++d) shapes[i].shape[d] = dims[i][d];
    }
    std::vector<MSTensorHandle> handles = detail::handles_of(inputs);
    return MSModelResize(handle_, {handles.size(), handles.data()}, shapes.data(), shapes.size());
  }
  Status UpdateWeights(const std::vector<MSTensor>& weights) {
    std::vector<MSTensorHandle> handles = detail::handles_of(weights);
    return MSModelUpdateWeights(handle_, {handles.size(), handles.data()});
  }
  Status Predict(const std::vector<MSTensor>& inputs, std::vector<MSTensor>* outputs, const MSKernelCallBack& before = nullptr,
                 const MSKernelCallBack& after = nullptr) {
    std::vector<MSTensorHandle> handles = detail::handles_of(inputs);
    MSTensorHandleArray made{0, nullptr};
    detail::CallBacks calls{&before, &after};
    const Status status = MSModelPredictObserved(handle_, {handles.size(), handles.data()}, &made, before ? detail::CallBacks::Before : nullptr,
                                                 after ? detail::CallBacks::After : nullptr, &calls);
    if (status && outputs) *outputs = detail::tensors_of(made);
    return status;
  }
  // On what the inputs hold.
  Status Predict(const MSKernelCallBack& before = nullptr, const MSKernelCallBack& after = nullptr) { return Predict(GetInputs(), nullptr, before, after); }
  std::vector<MSTensor> GetInputs() { return detail::tensors_of(MSModelGetInputs(handle_)); }
  std::vector<MSTensor> GetOutputs() { return detail::tensors_of(MSModelGetOutputs(handle_)); }
  MSTensor GetInputByTensorName(const std::string& name) { return MSTensor(MSModelGetInputByTensorName(handle_, name.c_str())); }
  MSTensor GetOutputByTensorName(const std::string& name) { return MSTensor(MSModelGetOutputByTensorName(handle_, name.c_str())); }
  std::vector<std::string> GetOutputTensorNames() {
    std::vector<std::string> names;
    for (const MSTensor& t : GetOutputs()) names.push_back(t.Name());
    return names;
  }
  // What a node computes, inside of the model too; kept from the next run on. None: there is no such node.
  std::vector<MSTensor> GetOutputsByNodeName(const std::string& name) { return detail::tensors_of(MSModelGetOutputsByNodeName(handle_, name.c_str())); }
  // Empty for an unknown key.
  std::string GetModelInfo(const std::string& key) {
    const char* const found = MSModelGetInfo(handle_, key.c_str());
    return found ? found : "";
  }
  // ---- training, of a model that was converted as a training step: with libmycelia_lite_train, docs/on-device-training.md
  Status Build(const GraphCell& graph, const std::shared_ptr<Context>& context, const TrainCfg& config) {
    if (config.optimization_level_ != kO0) return {kLiteNotSupport, "optimization_level_: training computes in float32, kO0"};
    if (Status status = Build(graph.GetGraph(), context); !status) return status;
    if (Status status = SetTrainMode(true); !status) return status;
    return config.accumulate_gradients_ && GetGradients().empty() ? Status(kLiteNotSupport, MSGetLastError()) : Status();
  }
  Status SetTrainMode(bool train) { return MSModelSetTrainMode(handle_, train); }
  bool GetTrainMode() const { return MSModelGetTrainMode(handle_); }
  // A step of the training, or an answer, on what the inputs hold.
  Status RunStep(const MSKernelCallBack& before = nullptr, const MSKernelCallBack& after = nullptr) {
    detail::CallBacks calls{&before, &after};
    return MSRunStepObserved(handle_, before ? detail::CallBacks::Before : nullptr, after ? detail::CallBacks::After : nullptr, &calls);
  }
  Status SetLearningRate(float learning_rate) { return MSModelSetLearningRate(handle_, learning_rate); }
  // NaN if the rate follows a schedule of the model.
  float GetLearningRate() const { return MSModelGetLearningRate(handle_); }
  Status SetupVirtualBatch(int virtual_batch_multiplier, float lr = -1.0f, float momentum = -1.0f) {
    return MSModelSetupVirtualBatch(handle_, virtual_batch_multiplier, lr, momentum);
  }
  // Tensors whose memory is what the next run uses, by name.
  std::vector<MSTensor> GetFeatureMaps() { return detail::tensors_of(MSModelGetWeights(handle_)); }
  std::vector<MSTensor> GetTrainableParams() { return detail::tensors_of(MSModelGetTrainableParams(handle_)); }
  std::vector<MSTensor> GetOptimizerParams() { return detail::tensors_of(MSModelGetOptimizerParams(handle_)); }
  Status UpdateFeatureMaps(const std::vector<MSTensor>& weights) { return UpdateWeights(weights); }
  Status SetOptimizerParams(const std::vector<MSTensor>& params) { return UpdateWeights(params); }
  // What the optimizer gets, by the names of weights; kept from the next step on.
  std::vector<MSTensor> GetGradients() { return detail::tensors_of(MSModelGetGradients(handle_)); }
  Status ApplyGradients(const std::vector<MSTensor>& gradients) {
    std::vector<MSTensorHandle> handles = detail::handles_of(gradients);
    return MSModelApplyGradients(handle_, {handles.size(), handles.data()});
  }

  // Names of MindSpore Lite for what is not there: each call says so, by its code and reason.
  bool HasPreprocess() const { return false; }
  Status PredictWithPreprocess(const std::vector<std::vector<MSTensor>>&, std::vector<MSTensor>*, const MSKernelCallBack& = nullptr,
                               const MSKernelCallBack& = nullptr) {
    return {kLiteNotSupport, "PredictWithPreprocess: no model has preprocessing inside"};
  }
  Status BindGLTexture2DMemory(const std::map<std::string, unsigned int>&, std::map<std::string, unsigned int>*) {
    return {kLiteNotSupport, "BindGLTexture2DMemory: the runtime uses no GPU"};
  }
  static bool CheckModelSupport(MSDeviceType device, ModelType type) { return MSModelCheckSupport(device, static_cast<MSModelType>(type)); }

 private:
  template <class Call>
  Status Built(const std::shared_ptr<Context>& context, const Call& call) {
    MSContextHandle handle = nullptr;
    if (context)
      if (Status status = context->Prepare(&handle); !status) return status;
    return call(handle);
  }

  friend class Serialization;
  MSModelHandle handle_;
};

inline Status Serialization::ExportModel(const Model& model, ModelType type, const std::string& file, QuantizationType quantization,
                                         bool export_inference_only, const std::vector<std::string>& output_names) {
  std::vector<const char*> names;
  for (const std::string& name : output_names) names.push_back(name.c_str());
  return MSExportModel(model.handle_, static_cast<MSModelType>(type), file.c_str(), static_cast<MSQuantizationType>(quantization),
                       export_inference_only, names.data(), names.size());
}
inline Status Serialization::ExportModel(const Model& model, ModelType type, std::string* bytes, QuantizationType quantization,
                                         bool export_inference_only, const std::vector<std::string>& output_names) {
  std::vector<const char*> names;
  for (const std::string& name : output_names) names.push_back(name.c_str());
  char* data = nullptr;
  size_t size = 0;
  const Status status = MSExportModelBuffer(model.handle_, static_cast<MSModelType>(type), &data, &size, static_cast<MSQuantizationType>(quantization),
                                            export_inference_only, names.data(), names.size());
  if (status) bytes->assign(data, size);
  MSFreeBuffer(data);
  return status;
}

class RunnerConfig {
 public:
  void SetWorkersNum(int32_t workers_num) { workers_ = workers_num; }
  int32_t GetWorkersNum() const { return workers_; }
  void SetContext(const std::shared_ptr<Context>& context) { context_ = context; }
  std::shared_ptr<Context> GetContext() const { return context_; }
  void SetConfigInfo(const std::string& section, const std::map<std::string, std::string>& config) { config_[section] = config; }
  const std::map<std::string, std::map<std::string, std::string>>& GetConfigInfo() const { return config_; }

 private:
  int32_t workers_ = 1;
  std::shared_ptr<Context> context_;
  std::map<std::string, std::map<std::string, std::string>> config_;
};

// One model for many threads: its workers share weights and packed constants.
class ModelParallelRunner {
 public:
  ModelParallelRunner() : handle_(MSRunnerCreate()) {}
  ~ModelParallelRunner() { MSRunnerDestroy(&handle_); }
  ModelParallelRunner(const ModelParallelRunner&) = delete;
  ModelParallelRunner& operator=(const ModelParallelRunner&) = delete;

  Status Init(const std::string& model_path, const std::shared_ptr<RunnerConfig>& config = nullptr) {
    MSContextHandle context = nullptr;
    if (config && config->GetContext())
      if (Status status = config->GetContext()->Prepare(&context); !status) return status;
    for (const auto& [section, keys] : config ? config->GetConfigInfo() : std::map<std::string, std::map<std::string, std::string>>())
      for (const auto& [key, value] : keys)
        if (Status status = MSRunnerUpdateConfig(handle_, section.c_str(), key.c_str(), value.c_str()); !status) return status;
    return MSRunnerInit(handle_, model_path.c_str(), context, config ? config->GetWorkersNum() : 1);
  }
  // Descriptions, without elements.
  std::vector<MSTensor> GetInputs() { return detail::tensors_of(MSRunnerGetInputs(handle_)); }
  std::vector<MSTensor> GetOutputs() { return detail::tensors_of(MSRunnerGetOutputs(handle_)); }
  // Called by any number of threads; waits for a free worker.
  Status Predict(const std::vector<MSTensor>& inputs, std::vector<MSTensor>* outputs) {
    std::vector<MSTensorHandle> handles = detail::handles_of(inputs);
    size_t count = MSRunnerGetOutputs(handle_).handle_num;
    std::vector<MSTensorHandle> made(count);
    const Status status = MSRunnerPredict(handle_, {handles.size(), handles.data()}, made.data(), &count);
    if (!status) return status;
    outputs->clear();
    for (const MSTensorHandle t : made) outputs->push_back(MSTensor::Owned(t));
    return status;
  }

 private:
  MSRunnerHandle handle_;
};

inline std::string Version() { return std::string("Mycelia Lite ") + MSVersion(); }

}  // namespace mycelia

#endif
