#include "model_file.h"

#include "crypto/sealed.h"
#include "mycelia/abi.h"
#include "schema.h"

namespace mycelia::lite {

namespace {

using namespace schema;

struct Dtype {
  int32_t number, abi, bytes;
};
constexpr Dtype kDtypes[] = {
    {kDataType_BOOL, MYC_BOOL, 1},   {kDataType_INT8, MYC_I8, 1},     {kDataType_INT16, MYC_I16, 2},   {kDataType_INT32, MYC_I32, 4},
    {kDataType_INT64, MYC_I64, 8},   {kDataType_UINT8, MYC_U8, 1},    {kDataType_UINT16, MYC_U16, 2},  {kDataType_UINT32, MYC_U32, 4},
    {kDataType_UINT64, MYC_U64, 8},  {kDataType_FLOAT16, MYC_F16, 2}, {kDataType_FLOAT32, MYC_F32, 4}, {kDataType_FLOAT64, MYC_F64, 8},
    {kDataType_BFLOAT16, MYC_BF16, 2},
};

constexpr int64_t kMostElements = int64_t{1} << 47;

// MindSpore Lite's sum: the first byte as the hash of a char, which is signed on some machines.
bool is_check_sum(std::string_view sum, uint8_t first) {
  return sum == std::to_string(first) || sum == std::to_string(static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(first))));
}

Status read_tensor(const Table& table, size_t index, OutsideFiles* outside, FileTensor* tensor) {
  const std::string which = message({"tensor ", index});
  tensor->name = table.text(kTensor_name);
  tensor->dtype = table.get<int32_t>(kTensor_dataType);
  tensor->format = table.get<int32_t>(kTensor_format);
  const Span<int32_t> dims = table.span<int32_t>(kTensor_dims);
  if (dims.size > MYC_MAX_RANK) return {kNotSupported, message({which, " has ", dims.size, " dimensions, at most 8 are supported"})};
  for (uint32_t i = 0; i < dims.size; ++i) tensor->shape.push_back(dims[i]);
  const Span<uint8_t> inside = table.span<uint8_t>(kTensor_data);
  const TableSpan places = table.tables(kTensor_externalData);
  if (!inside.size && !places.size()) {
    tensor->meaning = read_scales(table, tensor->dtype);
    static const uint8_t nothing = 0;  // where a constant without elements lies
    if (table.get<int32_t>(kTensor_nodeType) == 0 && element_count(tensor->shape) == 0 && abi_dtype(tensor->dtype) >= 0) tensor->data = &nothing;
    return {};
  }
  const std::string name = message({which, " '", tensor->name, "'"});
  const uint8_t* data = inside.data;
  uint64_t bytes = inside.size;
  if (!inside.size) {
    if (places.size() != 1) return broken(message({name, " lies in ", places.size(), " files"}));
    const Table place = places[0];
    Status status = outside->find(place.text(kExternalData_location), place.get<int64_t>(kExternalData_offset),
                                  place.get<int64_t>(kExternalData_length, -1), &data, &bytes);
    if (!status) return {status.code, message({"the weights of ", name, " ", status.text})};
    if (!bytes) return {};
    const std::string_view sum = place.text(kExternalData_checkSum);
    if (!sum.empty() && !is_check_sum(sum, data[0])) return broken(message({"the check sum of ", name, " is not ", sum}));
  }
  tensor->scales = read_scales(table, tensor->dtype);
  if (!tensor->scales && (table.get<int32_t>(kTensor_weightQuantCompressType) != 0 || table.get<uint8_t>(kTensor_enableHuffmanCode) != 0 ||
                          table.span<float>(kTensor_quantClusters).size || table.tables(kTensor_quantParams).size()))
    return {kNotSupported, message({which, " '", tensor->name, "' is quantized, ", kUnreadScales})};
  const int32_t abi = abi_dtype(tensor->dtype);
  const int64_t count = element_count(tensor->shape);
  if (abi < 0) return {kNotSupported, message({which, " has dtype number ", tensor->dtype, ", which is unknown"})};
  const uint64_t item = static_cast<uint64_t>(item_bytes(abi)), item_bits = tensor->scales && tensor->scales->bits ? tensor->scales->bits : 8 * item;
  if (count < 0 || (static_cast<uint64_t>(count) * item_bits + 8 * item - 1) / (8 * item) * item != bytes)
    return broken(message({which, " '", tensor->name, "' has ", bytes, " bytes, which do not fit its shape"}));
  tensor->data = data;
  tensor->bytes = bytes;
  return {};
}

}  // namespace

std::string name_of_operator(uint8_t kind) { return kind < kOpCount ? op_name(kind) : message({"operator number ", kind}); }

int32_t abi_dtype(int32_t number) {
  for (const Dtype& d : kDtypes)
    if (d.number == number) return d.abi;
  return -1;
}

int32_t file_dtype(int32_t abi) {
  for (const Dtype& d : kDtypes)
    if (d.abi == abi) return d.number;
  return 0;
}

int64_t item_bytes(int32_t abi) {
  for (const Dtype& d : kDtypes)
    if (d.abi == abi) return d.bytes;
  return 0;
}

int64_t element_count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t n : shape) {
    if (n < 0) return -1;
    if (n == 0) {
      empty = true;
    } else {
      if (n > kMostElements / count) return -1;
      count *= n;
    }
  }
  return empty ? 0 : count;
}

Status read_model_file(const uint8_t* data, size_t size, ModelFile* file) {
  if (size >= 4 && (data[0] | data[1] << 8 | data[2] << 16 | static_cast<uint32_t>(data[3]) << 24) == kSealedMagic)
    return {kGraphInvalid, "the model is encrypted: give the key that it was encrypted with"};
  if (size < 8 || std::memcmp(data + 4, kIdentifier, 4) != 0) return {kGraphInvalid, "this is no .ms file: the identifier MSL2 is missing"};
  file->reader = std::make_unique<Reader>(data, size);
  Reader& reader = *file->reader;
  const Table root(&reader, reader.follow(0));
  if (!reader.ok()) return broken(reader.fault());

  const TableSpan tensors = root.tables(kMetaGraph_allTensors);
  file->tensors.resize(tensors.size());
  for (uint32_t i = 0; i < tensors.size() && reader.ok(); ++i) {
    if (Status status = read_tensor(tensors[i], i, &file->outside, &file->tensors[i]); !status) return status;
  }
  file->fixed_by = root.text(kMetaGraph_fixedBy);
  file->inputs = indices(root.span<uint32_t>(kMetaGraph_inputIndex));
  file->outputs = indices(root.span<uint32_t>(kMetaGraph_outputIndex));

  return read_graphs(root, file);
}

}  // namespace mycelia::lite
