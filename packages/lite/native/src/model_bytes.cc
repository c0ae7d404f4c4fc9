#include "model_bytes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace mycelia::lite {

ModelBytes::~ModelBytes() {
  if (mapped_) munmap(const_cast<uint8_t*>(data_), size_);
}

Status ModelBytes::map(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe is refused below, not waited for
  if (file < 0) return {kParameterInvalid, message({"cannot open '", path, "': ", std::strerror(errno)})};
  struct stat about {};
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size <= 0) {
    close(file);
    return {kGraphInvalid, message({"'", path, "' is no file with content"})};
  }
  void* const mapped = mmap(nullptr, static_cast<size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return {kMemory, message({"cannot map '", path, "': ", std::strerror(errno)})};
  data_ = static_cast<const uint8_t*>(mapped);
  size_ = static_cast<size_t>(about.st_size);
  mapped_ = true;
  return {};
}

Status ModelBytes::copy(const void* data, size_t size) {
  if (!data || !size) return {kNullPointer, "the model's data is empty"};
  Memory memory(size);
  if (!memory.data()) return {kMemory, message({"no memory for the model's ", size, " bytes"})};
  std::memcpy(memory.data(), data, size);
  take(std::move(memory), size);
  return {};
}

void ModelBytes::take(Memory memory, size_t size) {
  owned_ = std::move(memory);
  data_ = owned_.data();
  size_ = size;
}

// For the pages that lie inside of the bytes; advice that the system does not know is left out.
void ModelBytes::advise(const uint8_t* data, size_t bytes, int advice) const {
  if (!mapped_ || data < data_ || data + bytes > data_ + size_) return;
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(data + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

void ModelBytes::release(const uint8_t* data, size_t bytes) const { advise(data, bytes, MADV_DONTNEED); }

void ModelBytes::expect(const uint8_t* data, size_t bytes) const {
#ifdef MADV_POPULATE_READ  // Linux 5.14
  advise(data, bytes, MADV_POPULATE_READ);
#else
  advise(data, bytes, MADV_WILLNEED);
#endif
}

void OutsideFiles::release(const uint8_t* data, size_t bytes) const {
  for (const auto& [name, file] : files_) file->release(data, bytes);
}

void OutsideFiles::expect(const uint8_t* data, size_t bytes) const {
  for (const auto& [name, file] : files_) file->expect(data, bytes);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace mycelia::lite
