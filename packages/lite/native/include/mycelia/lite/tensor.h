// Tensors of the Lite runtime in C++, and how calls end.
#ifndef MYCELIA_LITE_TENSOR_H_
#define MYCELIA_LITE_TENSOR_H_

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mycelia/lite/c_api.h"

namespace mycelia {

// MindSpore Lite's names of numbers that the C interface has.
enum class DataType : int {
  kTypeUnknown = kMSDataTypeUnknown,
  kNumberTypeBool = kMSDataTypeNumberTypeBool,
  kNumberTypeInt8 = kMSDataTypeNumberTypeInt8,
  kNumberTypeInt16 = kMSDataTypeNumberTypeInt16,
  kNumberTypeInt32 = kMSDataTypeNumberTypeInt32,
  kNumberTypeInt64 = kMSDataTypeNumberTypeInt64,
  kNumberTypeUInt8 = kMSDataTypeNumberTypeUInt8,
  kNumberTypeUInt16 = kMSDataTypeNumberTypeUInt16,
  kNumberTypeUInt32 = kMSDataTypeNumberTypeUInt32,
  kNumberTypeUInt64 = kMSDataTypeNumberTypeUInt64,
  kNumberTypeFloat16 = kMSDataTypeNumberTypeFloat16,
  kNumberTypeFloat32 = kMSDataTypeNumberTypeFloat32,
  kNumberTypeFloat64 = kMSDataTypeNumberTypeFloat64
};
enum Format : int { NCHW = 0, NHWC = 1, NHWC4 = 2, HWKC = 3, HWCK = 4, KCHW = 5, CKHW = 6, KHWC = 7, CHWK = 8, HW = 9, HW4 = 10, NC = 11, NC4 = 12,
                    NC4HW4 = 13, NCDHW = 15, NWC = 16, NCW = 17, NC8HW8 = 18 };
enum StatusCode : int {
  kSuccess = kMSStatusSuccess,
  kLiteError = kMSStatusLiteError,
  kLiteNullptr = kMSStatusLiteNullptr,
  kLiteParamInvalid = kMSStatusLiteParamInvalid,
  kLiteMemoryFailed = kMSStatusLiteMemoryFailed,
  kLiteNotSupport = kMSStatusLiteNotSupport,
  kLiteInputTensorError = kMSStatusLiteInputTensorError,
  kLiteReentrantError = kMSStatusLiteReentrantError,
  kLiteGraphFileError = kMSStatusLiteGraphFileError,
  kLiteNotFindOp = kMSStatusLiteNotFindOp,
  kLiteInvalidOpAttr = kMSStatusLiteInvalidOpAttr,
  kLiteOpExecuteFailure = kMSStatusLiteOpExecuteFailure,
  kLiteInferError = kMSStatusLiteInferError,
  kLiteInferInvalid = kMSStatusLiteInferInvalid,
  kLiteInputParamInvalid = -600  // of the converter
};

// `min` and `max`: the numbers that the least and the greatest integer stand for.
struct QuantParam {
  int bit_num;
  double scale;
  int32_t zero_point;
  double min, max;
};

// How a call ended: true in conditions if it succeeded.
class Status {
 public:
  Status(enum StatusCode code, std::string text) : code_(code), text_(std::move(text)) {}
  Status(enum StatusCode code = kSuccess) : code_(code) {}
  // Of a call of the C interface, with its reason.
  Status(MSStatus code) : Status(static_cast<enum StatusCode>(code), code == kMSStatusSuccess ? "" : MSGetLastError()) {}
  enum StatusCode StatusCode() const { return code_; }
  const std::string& ToString() const { return text_; }
  bool IsOk() const { return code_ == kSuccess; }
  bool IsError() const { return !IsOk(); }
  bool operator==(enum StatusCode other) const { return code_ == other; }
  bool operator!=(enum StatusCode other) const { return code_ != other; }
  explicit operator bool() const { return IsOk(); }

 private:
  enum StatusCode code_;
  std::string text_;
};

// Elements with a name, a type and a shape. Copies are the same tensor.
class MSTensor {
 public:
  MSTensor() = default;
  // A tensor of a model, which it belongs to.
  explicit MSTensor(MSTensorHandle handle) : handle_(handle, [](void*) {}) {}
  // A new tensor with a copy of `data`, zeros if it is null; IsNull() if type and shape cannot be.
  static MSTensor CreateTensor(const std::string& name, enum DataType type, const std::vector<int64_t>& shape, const void* data, size_t data_len) {
    return Owned(MSTensorCreate(name.c_str(), static_cast<MSDataType>(type), shape.data(), shape.size(), data, data_len));
  }
  // A new tensor with the bytes of a file; IsNull() if it cannot be read or has not as many as the tensor.
  static MSTensor CreateTensor(const std::string& name, enum DataType type, const std::vector<int64_t>& shape, const std::string& file) {
    MSTensor made = CreateTensor(name, type, shape, nullptr, 0);
    std::FILE* const opened = made.IsNull() ? nullptr : std::fopen(file.c_str(), "rb");
    const bool fine = opened && std::fread(made.MutableData(), 1, made.DataSize(), opened) == made.DataSize() && std::fgetc(opened) == EOF;
    if (opened) std::fclose(opened);
    return fine ? made : MSTensor();
  }
  // A new tensor that uses `data` in place, which must stay; null: it has no elements until SetData.
  static MSTensor CreateRefTensor(const std::string& name, enum DataType type, const std::vector<int64_t>& shape, void* data) {
    return Owned(MSTensorCreateReference(name.c_str(), static_cast<MSDataType>(type), shape.data(), shape.size(), data));
  }

  bool IsNull() const { return handle_ == nullptr; }
  std::string Name() const { return IsNull() ? "" : MSTensorGetName(handle()); }
  enum DataType DataType() const { return static_cast<enum DataType>(MSTensorGetDataType(handle())); }
  std::vector<int64_t> Shape() const {
    size_t count = 0;
    const int64_t* sizes = MSTensorGetShape(handle(), &count);
    return {sizes, sizes + count};
  }
  int64_t ElementNum() const { return MSTensorGetElementNum(handle()); }
  size_t DataSize() const { return MSTensorGetDataSize(handle()); }
  std::shared_ptr<const void> Data() const { return {handle_, MSTensorGetData(handle())}; }
  void* MutableData() { return MSTensorGetMutableData(handle()); }
  // Memory of the caller's that is used in place and stays the caller's; null: the tensor's own again.
  Status SetData(void* data) { return MSTensorSetData(handle(), data); }
  Status SetShape(const std::vector<int64_t>& shape) { return MSTensorSetShape(handle(), shape.data(), shape.size()); }
  Status SetDataType(enum DataType type) { return MSTensorSetDataType(handle(), static_cast<MSDataType>(type)); }
  Status SetTensorName(const std::string& name) { return MSTensorSetName(handle(), name.c_str()); }
  Status SetFormat(Format format) { return MSTensorSetFormat(handle(), static_cast<MSFormat>(format)); }
  Format format() const { return static_cast<Format>(MSTensorGetFormat(handle())); }
  // What the integers of a quantized input or output stand for, (q - zero_point) * scale; empty for plain numbers.
  std::vector<QuantParam> QuantParams() const {
    std::vector<MSQuantParam> found(MSTensorGetQuantParams(handle(), nullptr, 0));
    MSTensorGetQuantParams(handle(), found.data(), found.size());
    std::vector<QuantParam> params;
    for (const MSQuantParam& p : found) {
      const double least = (DataType() != DataType::kNumberTypeUInt8 ? -std::exp2(p.bit_num - 1) : 0) - p.zero_point;
      params.push_back({p.bit_num, p.scale, p.zero_point, least * p.scale, (least + std::exp2(p.bit_num) - 1) * p.scale});
    }
    return params;
  }
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

}  // namespace mycelia

#endif
