#include "memory.h"

#include <algorithm>
#include <cstdlib>

namespace mycelia::lite {

namespace {
constexpr size_t kAlignment = 64;
}

Memory::Memory(size_t bytes) : size_(bytes) {
  const size_t rounded = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  data_ = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, rounded));
}

Memory& Memory::operator=(Memory&& other) noexcept {
  if (this != &other) {
    std::free(data_);
    data_ = other.data_, size_ = other.size_;
    other.data_ = nullptr, other.size_ = 0;
  }
  return *this;
}

Memory::~Memory() { std::free(data_); }

}  // namespace mycelia::lite
