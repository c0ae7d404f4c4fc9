// Tensors.
#include <algorithm>
#include <cstring>

#include "border.h"

using namespace mycelia::lite;

namespace {

size_t bytes_if_closed(const Type& type) {
  const int64_t count = element_count(type.shape);
  return count < 0 ? 0 : static_cast<size_t>(count * item_bytes(type.dtype));
}

template <class Set>
MSStatus change(MSTensorHandle handle, const char* what, const Set& set) {
  const auto tensor = find<Border>(handle);
  if (!tensor) return refused(kNullPointer, "the tensor is NULL or was freed");
  if (tensor->of_model) return refused(kParameterInvalid, std::string("the ") + what + " of tensor '" + tensor->name + "' is its model's");
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(tensor->guard);
    return set(*tensor);
  });
}

template <class T, class Get>
T ask(MSTensorHandle handle, T otherwise, const Get& get) {
  const auto tensor = find<Border>(handle);
  if (!tensor) return refused(kNullPointer, "the tensor is NULL or was freed"), otherwise;
  const std::lock_guard<std::mutex> lock(tensor->guard);
  return get(*tensor);
}

// Gives the tensor zeros of another type; a reference refers to nothing then.
Status retype(Border* tensor, Type type) {
  if (element_count(type.shape) < 0) return {kParameterInvalid, "the shape " + text_of(type) + " has a negative size or is too large"};
  if (tensor->reference) return tensor->type = std::move(type), tensor->data = nullptr, Status();
  Memory memory(bytes_if_closed(type));
  if (!memory.data()) return {kMemory, "no memory for " + std::to_string(bytes_if_closed(type)) + " bytes"};
  std::memset(memory.data(), 0, memory.size());
  tensor->type = std::move(type);
  tensor->memory = std::move(memory);
  tensor->data = tensor->memory.data();
  return {};
}

Status retype(Border* tensor, MSDataType type, const int64_t* shape, size_t shape_num) {
  const int32_t dtype = abi_dtype(type);
  if (dtype < 0) return {kParameterInvalid, "data type " + std::to_string(type) + " is unknown"};
  if (shape_num > MYC_MAX_RANK || (shape_num && !shape)) return {kParameterInvalid, "a tensor has at most 8 dimensions"};
  return retype(tensor, {dtype, std::vector<int64_t>(shape, shape + shape_num)});
}

// Lets the tensor use memory of a caller's; null: its own again.
Status refer(Border* tensor, void* data) {
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(item_bytes(tensor->type.dtype)))
    return {kParameterInvalid, "the data of tensor '" + tensor->name + "' are not aligned to its elements"};
  tensor->data = data ? static_cast<uint8_t*>(data) : tensor->memory.data();
  return {};
}

uint8_t* elements(const Border& tensor) {
  if (!tensor.made) return refused(kParameterInvalid, "tensor '" + tensor.name + "' has no elements: its model has not run since it was built or resized, or it tells what a runner takes"), nullptr;
  if (!tensor.data && tensor.reference) return refused(kParameterInvalid, "tensor '" + tensor.name + "' refers to no elements"), nullptr;
  if (!tensor.data) refused(kInferLater, "tensor '" + tensor.name + "' has open sizes: resize its model first");
  return tensor.data;
}
uint8_t* elements(MSTensorHandle handle) {
  return ask(handle, static_cast<uint8_t*>(nullptr), [](const Border& tensor) { return elements(tensor); });
}

}  // namespace

MSTensorHandle MSTensorCreate(const char* name, MSDataType type, const int64_t* shape, size_t shape_num, const void* data, size_t data_len) {
  MSTensorHandle made = nullptr;
  guarded([&] {
    auto tensor = std::make_shared<Border>();
    if (Status status = retype(tensor.get(), type, shape, shape_num); !status) return status;
    if (data && data_len != tensor->memory.size())
      return Status(kParameterInvalid, std::to_string(data_len) + " bytes were given for " + text_of(tensor->type) + ", which has " + std::to_string(tensor->memory.size()));
    if (data && data_len) std::memcpy(tensor->data, data, data_len);
    tensor->name = name ? name : "";
    made = publish(std::move(tensor));
    return Status();
  });
  return made;
}
MSTensorHandle MSTensorCreateReference(const char* name, MSDataType type, const int64_t* shape, size_t shape_num, void* data) {
  MSTensorHandle made = nullptr;
  guarded([&] {
    auto tensor = std::make_shared<Border>();
    tensor->reference = true;
    tensor->name = name ? name : "";
    if (Status status = retype(tensor.get(), type, shape, shape_num); !status) return status;
    if (Status status = refer(tensor.get(), data); !status) return status;
    made = publish(std::move(tensor));
    return Status();
  });
  return made;
}
void MSTensorDestroy(MSTensorHandle* tensor) {
  if (!tensor) return;
  const auto found = find<Border>(*tensor);
  if (found && found->of_model) return;  // it belongs to the model
  withdraw<Border>(*tensor);
  *tensor = nullptr;
}
MSTensorHandle MSTensorClone(MSTensorHandle handle) {
  MSTensorHandle made = nullptr;
  ask(handle, false, [&](const Border& tensor) {
    const uint8_t* const data = elements(tensor);
    return data && guarded([&] {
      auto copy = std::make_shared<Border>();
      if (Status status = retype(copy.get(), tensor.type); !status) return status;
      std::memcpy(copy->data, data, copy->memory.size());
      copy->name = tensor.name;
      copy->format = tensor.format;
      copy->meaning = tensor.meaning;
      made = publish(std::move(copy));
      return Status();
    }) == kMSStatusSuccess;
  });
  return made;
}

MSStatus MSTensorSetName(MSTensorHandle tensor, const char* name) {
  return change(tensor, "name", [&](Border& border) { return border.name = name ? name : "", Status(); });
}
const char* MSTensorGetName(MSTensorHandle handle) {
  return ask(handle, static_cast<const char*>(nullptr), [](const Border& tensor) { return tensor.name.c_str(); });
}
MSStatus MSTensorSetDataType(MSTensorHandle tensor, MSDataType type) {
  return change(tensor, "data type", [&](Border& border) {
    return retype(&border, type, border.type.shape.data(), border.type.shape.size());
  });
}
MSDataType MSTensorGetDataType(MSTensorHandle handle) {
  return ask(handle, kMSDataTypeUnknown, [](const Border& tensor) { return static_cast<MSDataType>(file_dtype(tensor.type.dtype)); });
}
MSStatus MSTensorSetShape(MSTensorHandle tensor, const int64_t* shape, size_t shape_num) {
  return change(tensor, "shape", [&](Border& border) {
    return retype(&border, static_cast<MSDataType>(file_dtype(border.type.dtype)), shape, shape_num);
  });
}
const int64_t* MSTensorGetShape(MSTensorHandle handle, size_t* shape_num) {
  if (shape_num) *shape_num = 0;
  return ask(handle, static_cast<const int64_t*>(nullptr), [&](const Border& tensor) {
    if (shape_num) *shape_num = tensor.type.shape.size();
    return tensor.type.shape.data();
  });
}
MSStatus MSTensorSetFormat(MSTensorHandle tensor, MSFormat format) {
  return change(tensor, "format", [&](Border& border) { return border.format = format, Status(); });
}
MSFormat MSTensorGetFormat(MSTensorHandle handle) {
  return ask(handle, kMSFormatNHWC, [](const Border& tensor) { return static_cast<MSFormat>(tensor.format); });
}
size_t MSTensorGetQuantParams(MSTensorHandle handle, MSQuantParam* params, size_t most) {
  return ask(handle, size_t{0}, [&](const Border& tensor) {
    const size_t count = tensor.meaning ? tensor.meaning->scale.size() : 0;
    for (size_t i = 0; params && i < std::min(count, most); ++i) {
      const float zero = tensor.meaning->zero[i];
      params[i] = {tensor.meaning->scale[i], static_cast<int32_t>(zero), static_cast<int32_t>(8 * item_bytes(tensor.type.dtype))};
    }
    return count;
  });
}
MSStatus MSTensorSetData(MSTensorHandle handle, void* data) {
  const auto tensor = find<Border>(handle);
  if (!tensor) return refused(kNullPointer, "the tensor is NULL or was freed");
  const auto set = [&] {
    const std::lock_guard<std::mutex> lock(tensor->guard);
    if (tensor->of_model && !tensor->session) return Status(kParameterInvalid, "tensor '" + tensor->name + "' is inside of its model");
    if (!tensor->memory.data() && !tensor->reference) return Status(kParameterInvalid, "tensor '" + tensor->name + "' has no memory yet: resize its model first");
    if (tensor->session) tensor->session->rebind();
    return refer(tensor.get(), data);
  };
  return tensor->session ? alone(*tensor->session, set) : guarded(set);
}
const void* MSTensorGetData(MSTensorHandle tensor) { return elements(tensor); }
void* MSTensorGetMutableData(MSTensorHandle tensor) { return elements(tensor); }
int64_t MSTensorGetElementNum(MSTensorHandle handle) {
  return ask(handle, int64_t{0}, [](const Border& tensor) { return element_count(tensor.type.shape); });
}
size_t MSTensorGetDataSize(MSTensorHandle handle) {
  return ask(handle, size_t{0}, [](const Border& tensor) { return bytes_if_closed(tensor.type); });
}
