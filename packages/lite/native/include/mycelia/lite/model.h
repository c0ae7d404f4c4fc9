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

#include "mycelia/lite/c_api.h"

namespace mycelia {

// How a call ended: true in conditions if it succeeded.
class Status {
 public:
  Status(MSStatus code, std::string text) : code_(code), text_(std::move(text)) {}
  Status(MSStatus code = kMSStatusSuccess) : code_(code), text_(code == kMSStatusSuccess ? "" : MSGetLastError()) {}
  MSStatus StatusCode() const { return code_; }
  const std::string& ToString() const { return text_; }
  bool IsOk() const { return code_ == kMSStatusSuccess; }
  explicit operator bool() const { return IsOk(); }

 private:
  MSStatus code_;
  std::string text_;
};

// A device that a model may run on.
class DeviceInfoContext {
 public:
  virtual ~DeviceInfoContext() = default;
  virtual MSDeviceType GetDeviceType() const = 0;
  void SetProvider(const std::string& provider) { provider_ = provider; }
  const std::string& GetProvider() const { return provider_; }
  void SetProviderDevice(const std::string& device) { provider_device_ = device; }
  const std::string& GetProviderDevice() const { return provider_device_; }

 private:
  std::string provider_, provider_device_;
};

class CPUDeviceInfo : public DeviceInfoContext {
 public:
  MSDeviceType GetDeviceType() const override { return kMSDeviceTypeCPU; }
  // Arithmetic of 16 bits where processor and kernels have it; Model::GetModelInfo("precision") says what came of it.
  void SetEnableFP16(bool is_fp16) { fp16_ = is_fp16; }
  bool GetEnableFP16() const { return fp16_; }

 private:
  bool fp16_ = false;
};

class Delegate;

// How a model is to run. It may be dropped when the model is built.
class Context {
 public:
  Context() : handle_(MSContextCreate()) {}
  ~Context() { MSContextDestroy(&handle_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  Status SetThreadNum(int32_t thread_num) { return MSContextSetThreadNum(handle_, thread_num); }
  int32_t GetThreadNum() const { return MSContextGetThreadNum(handle_); }
  Status SetInterOpParallelNum(int32_t parallel_num) { return MSContextSetInterOpParallelNum(handle_, parallel_num); }
  int32_t GetInterOpParallelNum() const { return MSContextGetInterOpParallelNum(handle_); }
  Status SetThreadAffinity(int mode) { return MSContextSetThreadAffinityMode(handle_, mode); }
  int GetThreadAffinityMode() const { return MSContextGetThreadAffinityMode(handle_); }
  Status SetThreadAffinity(const std::vector<int32_t>& core_list) {
    return MSContextSetThreadAffinityCoreList(handle_, core_list.data(), core_list.size());
  }
  std::vector<int32_t> GetThreadAffinityCoreList() const {
    size_t count = 0;
    const int32_t* cores = MSContextGetThreadAffinityCoreList(handle_, &count);
    return {cores, cores + count};
  }
  Status SetEnableParallel(bool is_parallel) { return MSContextSetEnableParallel(handle_, is_parallel); }
  bool GetEnableParallel() const { return MSContextGetEnableParallel(handle_); }
  Status SetSharedThreadPool(bool is_shared) { return MSContextSetSharedThreadPool(handle_, is_shared); }
  // Devices in order of preference, three at most; read when a model is built.
  std::vector<std::shared_ptr<DeviceInfoContext>>& MutableDeviceInfo() { return devices_; }
  // Adds a delegate behind those that were set before.
  inline Status SetDelegate(const std::shared_ptr<Delegate>& delegate);

  // For a call that builds: the handle, with the devices described. One context serves any number of models.
  Status Prepare(MSContextHandle* handle) {
    for (; described_ < devices_.size(); ++described_) {
      MSDeviceInfoHandle device = MSDeviceInfoCreate(devices_[described_]->GetDeviceType());
      if (!device) return kMSStatusLiteNotSupport;
      if (const auto* cpu = dynamic_cast<const CPUDeviceInfo*>(devices_[described_].get())) MSDeviceInfoSetEnableFP16(device, cpu->GetEnableFP16());
      MSDeviceInfoSetProvider(device, devices_[described_]->GetProvider().c_str());
      MSDeviceInfoSetProviderDevice(device, devices_[described_]->GetProviderDevice().c_str());
      const Status status = MSContextAddDeviceInfo(handle_, device);
      MSDeviceInfoDestroy(&device);
      if (!status) return status;
    }
    *handle = handle_;
    return {};
  }

 private:
  MSContextHandle handle_;
  std::vector<std::shared_ptr<DeviceInfoContext>> devices_;
  size_t described_ = 0;
};

// Elements with a name, a type and a shape. Copies are the same tensor.
class MSTensor {
 public:
  MSTensor() = default;
  // A tensor of a model, which it belongs to.
  explicit MSTensor(MSTensorHandle handle) : handle_(handle, [](void*) {}) {}
  // A new tensor with a copy of `data`, zeros if it is null; IsNull() if type and shape cannot be.
  static MSTensor CreateTensor(const std::string& name, MSDataType type, const std::vector<int64_t>& shape, const void* data, size_t data_len) {
    MSTensor made;
    const MSTensorHandle handle = MSTensorCreate(name.c_str(), type, shape.data(), shape.size(), data, data_len);
    if (handle) made.handle_ = {handle, [](void* h) { MSTensorDestroy(&h); }};
    return made;
  }

  // A new tensor that uses `data` in place, which must stay.
  static MSTensor CreateRefTensor(const std::string& name, MSDataType type, const std::vector<int64_t>& shape, void* data) {
    MSTensor made = CreateTensor(name, type, shape, nullptr, 0);
    if (!made.IsNull() && MSTensorSetData(made.handle(), data) != kMSStatusSuccess) made.handle_.reset();
    return made;
  }

  bool IsNull() const { return handle_ == nullptr; }
  std::string Name() const { return IsNull() ? "" : MSTensorGetName(handle()); }
  MSDataType DataType() const { return MSTensorGetDataType(handle()); }
  std::vector<int64_t> Shape() const {
    size_t count = 0;
    const int64_t* sizes = MSTensorGetShape(handle(), &count);
    return {sizes, sizes + count};
  }
  int64_t ElementNum() const { return MSTensorGetElementNum(handle()); }
  size_t DataSize() const { return MSTensorGetDataSize(handle()); }
  std::shared_ptr<const void> Data() const { return {handle_, MSTensorGetData(handle())}; }
  void* MutableData() { return MSTensorGetMutableData(handle()); }
  // Memory of the caller's that is used in place; null: the tensor's own again.
  Status SetData(void* data) { return MSTensorSetData(handle(), data); }
  Status SetShape(const std::vector<int64_t>& shape) { return MSTensorSetShape(handle(), shape.data(), shape.size()); }
  Status SetDataType(MSDataType type) { return MSTensorSetDataType(handle(), type); }
  Status SetTensorName(const std::string& name) { return MSTensorSetName(handle(), name.c_str()); }
  Status SetFormat(MSFormat format) { return MSTensorSetFormat(handle(), format); }
  MSFormat format() const { return MSTensorGetFormat(handle()); }
  MSTensor Clone() const { return Owned(MSTensorClone(handle())); }
  // A tensor that the caller is to destroy.
  static MSTensor Owned(MSTensorHandle handle) {
    MSTensor made;
    if (handle) made.handle_ = {handle, [](void* h) { MSTensorDestroy(&h); }};
    return made;
  }
  MSTensorHandle handle() const { return handle_.get(); }

 private:
  std::shared_ptr<void> handle_;
};

// A node that is about to run or has run.
struct MSCallBackParam {
  std::string node_name, node_type;
};
// False ends the run.
using MSKernelCallBack = std::function<bool(const std::vector<MSTensor>& inputs, const std::vector<MSTensor>& outputs, const MSCallBackParam& node)>;

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
  static Status Load(const void* model_data, size_t data_size, MSModelType, Graph* graph) {
    graph->bytes_.assign(static_cast<const char*>(model_data), data_size);
    return {};
  }
  static Status Load(const std::string& file, MSModelType, Graph* graph) {
    std::FILE* const opened = std::fopen(file.c_str(), "rb");
    if (!opened) return {kMSStatusLiteParamInvalid, "cannot open '" + file + "'"};
    graph->bytes_.clear();
    char block[65536];
    for (size_t n; (n = std::fread(block, 1, sizeof(block), opened)) > 0;) graph->bytes_.append(block, n);
    const bool fine = !std::ferror(opened);
    std::fclose(opened);
    return fine ? Status() : Status(kMSStatusLiteError, "cannot read '" + file + "'");
  }
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

  Status Build(const void* model_data, size_t data_size, MSModelType type = kMSModelTypeMindIRLite, const std::shared_ptr<Context>& context = nullptr) {
    return Built(context, [&](MSContextHandle c) { return MSModelBuild(handle_, model_data, data_size, type, c); });
  }
  Status Build(const std::string& model_path, MSModelType type = kMSModelTypeMindIRLite, const std::shared_ptr<Context>& context = nullptr) {
    return Built(context, [&](MSContextHandle c) { return MSModelBuildFromFile(handle_, model_path.c_str(), type, c); });
  }
  Status Build(const Graph& graph, const std::shared_ptr<Context>& context = nullptr) {
    return Build(graph.bytes().data(), graph.bytes().size(), kMSModelTypeMindIRLite, context);
  }
  // An encrypted file; `dec_key` has 16, 24 or 32 bytes.
  Status Build(const std::string& model_path, MSModelType type, const std::shared_ptr<Context>& context, const std::string& dec_key,
               const std::string& dec_mode = "AES-GCM") {
    return Built(context, [&](MSContextHandle c) {
      return MSModelBuildFromEncryptedFile(handle_, model_path.c_str(), type, c, dec_key.data(), dec_key.size(), dec_mode.c_str());
    });
  }
  // The file of another model once more: both share weights and packed constants.
  Status Build(const Model& other, const std::shared_ptr<Context>& context = nullptr) {
    return Built(context, [&](MSContextHandle c) { return MSModelBuildFromModel(handle_, other.handle_, c); });
  }
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
  static bool CheckModelSupport(MSDeviceType device, MSModelType type) { return MSModelCheckSupport(device, type); }

 private:
  template <class Call>
  Status Built(const std::shared_ptr<Context>& context, const Call& call) {
    MSContextHandle handle = nullptr;
    if (context)
      if (Status status = context->Prepare(&handle); !status) return status;
    return call(handle);
  }

  MSModelHandle handle_;
};

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

// A run of nodes on another device.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // Tensors as MSDelegateModelReplace tells.
  virtual MSStatus Execute(const std::vector<MSDelegateTensor>& inputs, std::vector<MSDelegateTensor>& outputs) = 0;
};

// The nodes of a plan, in the order in which they run.
class DelegateModel {
 public:
  explicit DelegateModel(MSDelegateModel* model) : model_(model) {}
  size_t size() const { return MSDelegateModelGetNodeNum(model_); }
  const MSDelegateNode* node(size_t i) const { return MSDelegateModelGetNode(model_, i); }
  std::string Name(size_t i) const { return MSDelegateNodeGetName(node(i)); }
  std::string Type(size_t i) const { return MSDelegateNodeGetType(node(i)); }
  std::vector<MSDelegateTensor> Inputs(size_t i) const {
    size_t count = 0;
    const MSDelegateTensor* tensors = MSDelegateNodeGetInputs(node(i), &count);
    return {tensors, tensors + count};
  }
  std::vector<MSDelegateTensor> Outputs(size_t i) const {
    size_t count = 0;
    const MSDelegateTensor* tensors = MSDelegateNodeGetOutputs(node(i), &count);
    return {tensors, tensors + count};
  }
  bool IsTaken(size_t i) const { return MSDelegateModelIsTaken(model_, i); }
  // Claims nodes first, ..., first + count - 1.
  MSStatus Replace(size_t first, size_t count, std::unique_ptr<Kernel> kernel, const std::string& why) {
    const MSDelegateKernel calls{kernel.get(), Run, Destroy};
    const MSStatus status = MSDelegateModelReplace(model_, first, count, &calls, why.c_str());
    if (status == kMSStatusSuccess) kernel.release();  // the runtime's
    return status;
  }
  void Decline(size_t i, const std::string& why) { MSDelegateModelDecline(model_, i, why.c_str()); }

 private:
  static MSStatus Run(void* user, const MSDelegateTensor* inputs, size_t input_num, MSDelegateTensor* outputs, size_t output_num) {
    std::vector<MSDelegateTensor> made(outputs, outputs + output_num);
    return static_cast<Kernel*>(user)->Execute({inputs, inputs + input_num}, made);
  }
  static void Destroy(void* user) { delete static_cast<Kernel*>(user); }

  MSDelegateModel* const model_;
};

// Another device. Build is called for every plan of a model.
class Delegate {
 public:
  explicit Delegate(std::string name) : name_(std::move(name)) {}
  virtual ~Delegate() = default;
  virtual MSStatus Build(DelegateModel* model) = 0;
  const std::string& name() const { return name_; }

 private:
  const std::string name_;
};

inline Status Context::SetDelegate(const std::shared_ptr<Delegate>& delegate) {
  using Kept = std::shared_ptr<Delegate>;
  const MSDelegateCallbacks calls{delegate->name().c_str(), new Kept(delegate),
                                  [](void* user, MSDelegateModel* model) {
                                    DelegateModel nodes(model);
                                    return (*static_cast<Kept*>(user))->Build(&nodes);
                                  },
                                  [](void* user) { delete static_cast<Kept*>(user); }};
  return MSContextAddDelegate(handle_, &calls);
}

inline std::string Version() { return std::string("Mycelia Lite ") + MSVersion(); }

}  // namespace mycelia

#endif
