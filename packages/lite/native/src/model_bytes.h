// Bytes of a model or of its weights: a mapped file, or memory.
#ifndef MYCELIA_LITE_MODEL_BYTES_H_
#define MYCELIA_LITE_MODEL_BYTES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "memory.h"
#include "status.h"

namespace mycelia::lite {

class ModelBytes {
 public:
  ModelBytes() = default;
  ModelBytes(const ModelBytes&) = delete;
  ModelBytes& operator=(const ModelBytes&) = delete;
  ~ModelBytes();
  Status map(const std::string& path);
  Status copy(const void* data, size_t size);
  void take(Memory memory, size_t size);
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  // Gives back the pages of bytes that were read and are kept in another form; who reads them again gets them from the file.
  void release(const uint8_t* data, size_t bytes) const;
  // Maps the pages of bytes that will all be read soon, at once instead of by a fault for a few of them each.
  void expect(const uint8_t* data, size_t bytes) const;

 private:
  void advise(const uint8_t* data, size_t bytes, int advice) const;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;
  Memory owned_;
};

// Weights in files of their own, each mapped once; nothing outside of the model's folder is read.
class OutsideFiles {
 public:
  // `folder`: of the model; empty for one that is not in a file.
  void set_folder(const std::string& folder) { folder_ = folder; }
  // `length` bytes from `offset` on in the file at `location`; -1: to its end.
  Status find(std::string_view location, int64_t offset, int64_t length, const uint8_t** data, uint64_t* bytes);
  void release(const uint8_t* data, size_t bytes) const;
  void expect(const uint8_t* data, size_t bytes) const;

 private:
  std::string folder_;
  std::map<std::string, std::unique_ptr<ModelBytes>, std::less<>> files_;
};

// The folder of a file.
std::string folder_of(const std::string& path);

}  // namespace mycelia::lite

#endif
