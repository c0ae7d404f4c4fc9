// The Lite runtime in C++: MindSpore Lite's classes over the C interface (c_api.h). Header only, C++17.
#ifndef MYCELIA_LITE_MODEL_H_
#define MYCELIA_LITE_MODEL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mycelia/lite/c_api.h"

namespace mycelia::lite {

// How a call ended: true in conditions if it succeeded.
class Status {
 public:
  Status(MSStatus code = kMSStatusSuccess) : code_(code), text_(code == kMSStatusSuccess ? "" : MSGetLastError()) {}
  MSStatus StatusCode() const { return code_; }
  const std::string& ToString() const { return text_; }
  bool IsOk() const { return code_ == kMSStatusSuccess; }
  explicit operator bool() const { return IsOk(); }

 private:
  MSStatus code_;
  std::string text_;
};

// How a model is to run.
class Context {
 public:
  Context() : handle_(MSContextCreate()) {}
  ~Context() { MSContextDestroy(&handle_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  Status SetThreadNum(int32_t thread_num) { return MSContextSetThreadNum(handle_, thread_num); }
  int32_t GetThreadNum() const { return MSContextGetThreadNum(handle_); }
  MSContextHandle handle() const { return handle_; }

 private:
  MSContextHandle handle_;
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
  MSTensorHandle handle() const { return handle_.get(); }

 private:
  std::shared_ptr<void> handle_;
};

// A `.ms` file that can be run.
class Model {
 public:
  Model() : handle_(MSModelCreate()) {}
  ~Model() { MSModelDestroy(&handle_); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  Status Build(const void* model_data, size_t data_size, MSModelType type = kMSModelTypeMindIRLite, const std::shared_ptr<Context>& context = nullptr) {
    return MSModelBuild(handle_, model_data, data_size, type, context ? context->handle() : nullptr);
  }
  Status Build(const std::string& model_path, MSModelType type = kMSModelTypeMindIRLite, const std::shared_ptr<Context>& context = nullptr) {
    return MSModelBuildFromFile(handle_, model_path.c_str(), type, context ? context->handle() : nullptr);
  }
  // An encrypted file; `dec_key` has 16, 24 or 32 bytes.
  Status Build(const std::string& model_path, MSModelType type, const std::shared_ptr<Context>& context, const std::string& dec_key,
               const std::string& dec_mode = "AES-GCM") {
    return MSModelBuildFromEncryptedFile(handle_, model_path.c_str(), type, context ? context->handle() : nullptr, dec_key.data(), dec_key.size(), dec_mode.c_str());
  }
  Status Resize(const std::vector<MSTensor>& inputs, const std::vector<std::vector<int64_t>>& dims) {
    std::vector<MSShapeInfo> shapes(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      shapes[i].shape_num = dims[i].size();
      for (size_t d = 0; d < dims[i].size() && d < MS_MAX_SHAPE_NUM; ++d) shapes[i].shape[d] = dims[i][d];
    }
    std::vector<MSTensorHandle> handles = handles_of(inputs);
    return MSModelResize(handle_, {handles.size(), handles.data()}, shapes.data(), shapes.size());
  }
  Status Predict(const std::vector<MSTensor>& inputs, std::vector<MSTensor>* outputs) {
    std::vector<MSTensorHandle> handles = handles_of(inputs);
    MSTensorHandleArray made{0, nullptr};
    const Status status = MSModelPredict(handle_, {handles.size(), handles.data()}, &made, nullptr, nullptr);
    if (status && outputs) *outputs = tensors_of(made);
    return status;
  }
  std::vector<MSTensor> GetInputs() { return tensors_of(MSModelGetInputs(handle_)); }
  std::vector<MSTensor> GetOutputs() { return tensors_of(MSModelGetOutputs(handle_)); }
  MSTensor GetInputByTensorName(const std::string& name) { return MSTensor(MSModelGetInputByTensorName(handle_, name.c_str())); }
  MSTensor GetOutputByTensorName(const std::string& name) { return MSTensor(MSModelGetOutputByTensorName(handle_, name.c_str())); }

 private:
  static std::vector<MSTensorHandle> handles_of(const std::vector<MSTensor>& tensors) {
    std::vector<MSTensorHandle> handles;
    for (const MSTensor& t : tensors) handles.push_back(t.handle());
    return handles;
  }
  static std::vector<MSTensor> tensors_of(const MSTensorHandleArray& array) {
    std::vector<MSTensor> tensors;
    for (size_t i = 0; i < array.handle_num; ++i) tensors.emplace_back(array.handle_list[i]);
    return tensors;
  }

  MSModelHandle handle_;
};

}  // namespace mycelia::lite

#endif
