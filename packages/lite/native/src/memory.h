// 64-byte aligned memory.
#ifndef MYCELIA_LITE_MEMORY_H_
#define MYCELIA_LITE_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace mycelia::lite {

class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes);
  // For what is written as a whole at once: the system hands out all pages in one go, not each at its first touch.
  static Memory present(size_t bytes);
  Memory(Memory&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr, other.size_ = 0; }
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();
  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mycelia::lite

#endif
