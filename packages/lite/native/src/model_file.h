// A `.ms` file as plain structs; names and data point into the file, which must stay.
#ifndef MYCELIA_LITE_MODEL_FILE_H_
#define MYCELIA_LITE_MODEL_FILE_H_

#include <memory>
#include <string_view>
#include <vector>

#include "flatbuffer.h"
#include "model_bytes.h"
#include "status.h"

namespace mycelia::lite {

struct FileTensor {
  std::string_view name;
  int32_t dtype = 0;  // MindSpore's number
  std::vector<int64_t> shape;
  const uint8_t* data = nullptr;  // of a constant
  uint64_t bytes = 0;
};

struct FileNode {
  std::string_view name;
  uint8_t kind = 0;  // tag of the union of primitives
  Table attributes;
  std::vector<uint32_t> inputs, outputs;
};

struct ModelFile {
  std::unique_ptr<Reader> reader;
  std::vector<FileTensor> tensors;
  std::vector<FileNode> nodes;  // in order of execution
  std::vector<uint32_t> inputs, outputs;
  OutsideFiles outside;  // weights that are not in the file itself
};

// Reads and checks: every index is one of a tensor, and is written before it is read.
Status read_model_file(const uint8_t* data, size_t size, ModelFile* file);

// The name of a primitive's tag.
std::string name_of_operator(uint8_t kind);

// abi.h's number of MindSpore's number of a dtype, -1 if there is none; and back.
int32_t abi_dtype(int32_t number);
int32_t file_dtype(int32_t abi);
int64_t item_bytes(int32_t abi);

// The number of elements, -1 if it does not fit into 2^47.
int64_t element_count(const std::vector<int64_t>& shape);

}  // namespace mycelia::lite

#endif
