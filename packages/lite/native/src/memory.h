// 64-byte aligned memory.
#ifndef MYCELIA_LITE_MEMORY_H_
#define MYCELIA_LITE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace mycelia::lite {

// Whether there is room for large memory: the system promises more than it has, and ends the process when that is used.
bool has_room(uint64_t bytes);

class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes);
  // Zeros, which take no room before they are written or read: the system brings pages at their first touch.
  static Memory zeros(size_t bytes);
  Memory(Memory&& other) noexcept : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    data_ = std::move(other.data_), size_ = std::exchange(other.size_, 0);
    return *this;
  }
  uint8_t* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  friend class Pool;
  std::shared_ptr<uint8_t> data_;  // shared by the parts of a pool
  size_t size_ = 0;
};

// Memory for what is written as a whole at once and kept: side by side on huge pages, which the system hands out in one go, not
// each at its first touch. A part that goes is free again when all those beside it are.
class Pool {
 public:
  // About so many bytes will be taken: whether huge pages are of use is known from the first part on.
  void expect(size_t bytes) { total_ = bytes; }
  Memory take(size_t bytes);

 private:
  Memory chunk_;
  size_t used_ = 0, total_ = 0;  // of the chunk; of all that was expected or taken
};

}  // namespace mycelia::lite

#endif
