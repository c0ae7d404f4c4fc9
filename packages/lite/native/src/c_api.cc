#include "mycelia/lite/c_api.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "crypto/gcm.h"
#include "crypto/sealed.h"
#include "kernels.h"
#include "session.h"

using mycelia::lite::Border;
using mycelia::lite::Memory;
using mycelia::lite::Session;
using mycelia::lite::Status;

namespace {

thread_local std::string last_error;

MSStatus told(const Status& status) {
  if (!status) last_error = status.text;
  return static_cast<MSStatus>(status.code);
}

MSStatus refused(int code, std::string text) { return told(Status(code, std::move(text))); }

// Nothing is thrown across the border; the only thing that the runtime can meet is a lack of memory.
template <class Body>
MSStatus guarded(const Body& body) {
  try {
    return told(body());
  } catch (const std::bad_alloc&) {
    return refused(mycelia::lite::kMemory, "out of memory");
  }
}

struct Context {
  int32_t threads = 1;
};

struct Model {
  std::unique_ptr<Session> session = std::make_unique<Session>();
  bool built = false, ran = false;
  std::vector<MSTensorHandle> inputs, outputs;
};

Model* model_of(MSModelHandle handle) { return static_cast<Model*>(handle); }
Border* tensor_of(MSTensorHandle handle) { return static_cast<Border*>(handle); }

template <class Open>
MSStatus build(MSModelHandle handle, MSModelType type, MSContextHandle context, const Open& open) {
  if (!handle) return refused(mycelia::lite::kNullPointer, "the model is NULL");
  Model& model = *model_of(handle);
  if (model.built) return refused(mycelia::lite::kParameterInvalid, "the model is built already: create another one");
  if (type != kMSModelTypeMindIRLite && type != kMSModelTypeMindIR)
    return refused(mycelia::lite::kNotSupported, "model type " + std::to_string(type) + " cannot be loaded: expected 4, MindIR_Lite");
  return guarded([&] {
    if (context) model.session->set_threads(static_cast<Context*>(context)->threads);
    Status status = open(*model.session);
    if (!status) {
      model.session = std::make_unique<Session>();
      return status;
    }
    for (Border& border : model.session->inputs()) model.inputs.push_back(&border);
    for (Border& border : model.session->outputs()) model.outputs.push_back(&border);
    model.built = true;
    return status;
  });
}

MSTensorHandle named(const std::vector<MSTensorHandle>& tensors, const char* name) {
  for (const MSTensorHandle t : tensors)
    if (name && tensor_of(t)->name == name) return t;
  return nullptr;
}

}  // namespace

const char* MSGetLastError(void) { return last_error.c_str(); }
const char* MSVersion(void) { return MYCELIA_LITE_VERSION; }
const char* MSInstructionSet(void) { return mycelia::lite::kernels().isa(); }

MSContextHandle MSContextCreate(void) { return new (std::nothrow) Context; }
void MSContextDestroy(MSContextHandle* context) {
  if (!context) return;
  delete static_cast<Context*>(*context);
  *context = nullptr;
}
MSStatus MSContextSetThreadNum(MSContextHandle context, int32_t thread_num) {
  if (!context) return refused(mycelia::lite::kNullPointer, "the context is NULL");
  if (thread_num < 1) return refused(mycelia::lite::kParameterInvalid, "thread_num must be at least 1, but got " + std::to_string(thread_num));
  static_cast<Context*>(context)->threads = thread_num;
  return kMSStatusSuccess;
}
int32_t MSContextGetThreadNum(MSContextHandle context) { return context ? static_cast<Context*>(context)->threads : 0; }

MSModelHandle MSModelCreate(void) { return new (std::nothrow) Model; }
void MSModelDestroy(MSModelHandle* model) {
  if (!model) return;
  delete model_of(*model);
  *model = nullptr;
}

MSStatus MSModelBuild(MSModelHandle model, const void* model_data, size_t data_size, MSModelType type, MSContextHandle context) {
  return build(model, type, context, [&](Session& session) { return session.open_bytes(model_data, data_size); });
}

MSStatus MSModelBuildFromFile(MSModelHandle model, const char* model_path, MSModelType type, MSContextHandle context) {
  if (!model_path) return refused(mycelia::lite::kNullPointer, "model_path is NULL");
  return build(model, type, context, [&](Session& session) { return session.open_file(model_path); });
}

MSStatus MSModelBuildFromEncryptedFile(MSModelHandle model, const char* model_path, MSModelType type, MSContextHandle context,
                                       const void* key, size_t key_len, const char* dec_mode) {
  if (!model_path || !dec_mode) return refused(mycelia::lite::kNullPointer, "model_path or dec_mode is NULL");
  return build(model, type, context, [&](Session& session) {
    mycelia::lite::ModelBytes sealed;
    if (Status status = sealed.map(model_path); !status) return status;
    Memory plain;
    size_t size = 0;
    if (Status status = mycelia::lite::open_sealed(sealed.data(), sealed.size(), key, key_len, dec_mode, &plain, &size); !status) return status;
    return session.open_memory(std::move(plain), size, mycelia::lite::folder_of(model_path));
  });
}

MSStatus MSEncryptInPlace(const void* key, size_t key_len, const void* nonce, void* data, size_t data_size, void* tag) {
  if (!nonce || !data || !tag) return refused(mycelia::lite::kNullPointer, "nonce, data or tag is NULL");
  if (Status status = mycelia::lite::check_key(key, key_len); !status) return told(status);
  mycelia::lite::Gcm(static_cast<const uint8_t*>(key), key_len)
      .seal(static_cast<const uint8_t*>(nonce), static_cast<uint8_t*>(data), data_size, static_cast<uint8_t*>(tag));
  return kMSStatusSuccess;
}

MSStatus MSModelResize(MSModelHandle handle, MSTensorHandleArray inputs, const MSShapeInfo* shape_infos, size_t shape_info_num) {
  if (!handle || !shape_infos || (inputs.handle_num && !inputs.handle_list))
    return refused(mycelia::lite::kNullPointer, "the model, the inputs or the shapes are NULL");
  Model& model = *model_of(handle);
  if (!model.built) return refused(mycelia::lite::kParameterInvalid, "the model is not built");
  if (inputs.handle_num != model.inputs.size() || shape_info_num != model.inputs.size())
    return refused(mycelia::lite::kParameterInvalid, std::to_string(inputs.handle_num) + " inputs and " + std::to_string(shape_info_num) +
                                                         " shapes were given, the model has " + std::to_string(model.inputs.size()) + " inputs");
  return guarded([&] {
    std::vector<std::vector<int64_t>> shapes(model.inputs.size());
    for (size_t i = 0; i < inputs.handle_num; ++i) {
      const auto found = std::find(model.inputs.begin(), model.inputs.end(), inputs.handle_list[i]);
      if (found == model.inputs.end()) return Status(mycelia::lite::kParameterInvalid, "tensor " + std::to_string(i) + " is no input of the model");
      const MSShapeInfo& info = shape_infos[i];
      if (info.shape_num > MS_MAX_SHAPE_NUM) return Status(mycelia::lite::kParameterInvalid, "shape_num is " + std::to_string(info.shape_num) + ", at most 32 can be");
      shapes[static_cast<size_t>(found - model.inputs.begin())].assign(info.shape, info.shape + info.shape_num);
    }
    Status status = model.session->resize(shapes);
    if (status) model.ran = false;
    return status;
  });
}

MSStatus MSModelPredict(MSModelHandle handle, MSTensorHandleArray inputs, MSTensorHandleArray* outputs) {
  if (!handle || (inputs.handle_num && !inputs.handle_list)) return refused(mycelia::lite::kNullPointer, "the model or its inputs are NULL");
  Model& model = *model_of(handle);
  if (!model.built) return refused(mycelia::lite::kParameterInvalid, "the model is not built");
  if (inputs.handle_num != model.inputs.size())
    return refused(mycelia::lite::kInputTensorWrong,
                   std::to_string(inputs.handle_num) + " inputs were given, the model has " + std::to_string(model.inputs.size()));
  return guarded([&] {
    if (!model.session->ready()) return model.session->predict();  // says why
    for (size_t i = 0; i < inputs.handle_num; ++i) {
      const Border* given = tensor_of(inputs.handle_list[i]);
      const Border& own = *tensor_of(model.inputs[i]);
      if (!given) return Status(mycelia::lite::kNullPointer, "input " + std::to_string(i) + " is NULL");
      if (given == &own) continue;
      if (given->type.dtype != own.type.dtype || given->type.shape != own.type.shape)
        return Status(mycelia::lite::kInputTensorWrong, "input '" + own.name + "' must be " + text_of(own.type) + ", but is " + text_of(given->type));
      std::memcpy(own.memory.data(), given->memory.data(), own.memory.size());
    }
    Status status = model.session->predict();
    model.ran = model.ran || bool(status);
    if (status && outputs) *outputs = {model.outputs.size(), model.outputs.data()};
    return status;
  });
}

MSTensorHandleArray MSModelGetInputs(MSModelHandle model) {
  return model ? MSTensorHandleArray{model_of(model)->inputs.size(), model_of(model)->inputs.data()} : MSTensorHandleArray{0, nullptr};
}
MSTensorHandleArray MSModelGetOutputs(MSModelHandle model) {
  return model ? MSTensorHandleArray{model_of(model)->outputs.size(), model_of(model)->outputs.data()} : MSTensorHandleArray{0, nullptr};
}
MSTensorHandle MSModelGetInputByTensorName(MSModelHandle model, const char* tensor_name) {
  return model ? named(model_of(model)->inputs, tensor_name) : nullptr;
}
MSTensorHandle MSModelGetOutputByTensorName(MSModelHandle model, const char* tensor_name) {
  return model ? named(model_of(model)->outputs, tensor_name) : nullptr;
}

MSTensorHandle MSTensorCreate(const char* name, MSDataType type, const int64_t* shape, size_t shape_num, const void* data, size_t data_len) {
  MSTensorHandle made = nullptr;
  guarded([&] {
    const int32_t dtype = mycelia::lite::abi_dtype(type);
    if (dtype < 0) return Status(mycelia::lite::kParameterInvalid, "data type " + std::to_string(type) + " is unknown");
    if (shape_num > MYC_MAX_RANK || (shape_num && !shape)) return Status(mycelia::lite::kParameterInvalid, "a tensor has at most 8 dimensions");
    mycelia::lite::Type described{dtype, std::vector<int64_t>(shape, shape + shape_num)};
    const int64_t count = mycelia::lite::element_count(described.shape);
    if (count < 0) return Status(mycelia::lite::kParameterInvalid, "the shape " + text_of(described) + " has a negative size or is too large");
    const size_t bytes = static_cast<size_t>(count * mycelia::lite::item_bytes(dtype));
    if (data && data_len != bytes)
      return Status(mycelia::lite::kParameterInvalid, std::to_string(data_len) + " bytes were given for " + text_of(described) + ", which has " + std::to_string(bytes));
    auto tensor = std::make_unique<Border>(Border{name ? name : "", std::move(described), Memory(bytes)});
    if (!tensor->memory.data()) return Status(mycelia::lite::kMemory, "no memory for " + std::to_string(bytes) + " bytes");
    if (data) std::memcpy(tensor->memory.data(), data, bytes);
    else std::memset(tensor->memory.data(), 0, bytes);
    made = tensor.release();
    return Status();
  });
  return made;
}
void MSTensorDestroy(MSTensorHandle* tensor) {
  if (!tensor) return;
  delete tensor_of(*tensor);
  *tensor = nullptr;
}
const char* MSTensorGetName(MSTensorHandle tensor) { return tensor ? tensor_of(tensor)->name.c_str() : nullptr; }
MSDataType MSTensorGetDataType(MSTensorHandle tensor) {
  return tensor ? static_cast<MSDataType>(mycelia::lite::file_dtype(tensor_of(tensor)->type.dtype)) : kMSDataTypeUnknown;
}
const int64_t* MSTensorGetShape(MSTensorHandle tensor, size_t* shape_num) {
  if (shape_num) *shape_num = tensor ? tensor_of(tensor)->type.shape.size() : 0;
  return tensor ? tensor_of(tensor)->type.shape.data() : nullptr;
}
const void* MSTensorGetData(MSTensorHandle tensor) { return tensor ? tensor_of(tensor)->memory.data() : nullptr; }
void* MSTensorGetMutableData(MSTensorHandle tensor) { return tensor ? tensor_of(tensor)->memory.data() : nullptr; }
int64_t MSTensorGetElementNum(MSTensorHandle tensor) { return tensor ? mycelia::lite::element_count(tensor_of(tensor)->type.shape) : 0; }
size_t MSTensorGetDataSize(MSTensorHandle tensor) { return tensor ? tensor_of(tensor)->memory.size() : 0; }
