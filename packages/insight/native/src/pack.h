// The manifest's own form: numbers of 8 bytes, texts, lists of plain items; the CRC-32C of all at the end.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "mycelia/crc32c.h"

namespace mycelia::insight {

class Packer {
 public:
  void number(int64_t n) { put(&n, sizeof n); }
  void text(const std::string& text) { number(static_cast<int64_t>(text.size())), put(text.data(), text.size()); }
  template <class T>
  void items(const std::vector<T>& items) {
    number(static_cast<int64_t>(items.size())), put(items.data(), items.size() * sizeof(T));
  }
  std::vector<char> finish() {
    const uint32_t checksum = crc32c(reinterpret_cast<const uint8_t*>(bytes_.data()), bytes_.size());
    put(&checksum, sizeof checksum);
    return std::move(bytes_);
  }

 private:
  void put(const void* data, size_t size) {
    const char* from = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  std::vector<char> bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(const std::vector<char>& bytes) : at_(bytes.data()), end_(bytes.data()) {
    if (bytes.size() < 4) return;
    uint32_t checksum;
    end_ += bytes.size() - 4;
    std::memcpy(&checksum, end_, 4);
    ok_ = checksum == crc32c(reinterpret_cast<const uint8_t*>(at_), bytes.size() - 4);
  }
  bool ok() const { return ok_; }
  bool at_end() const { return at_ == end_; }

  int64_t number() {
    int64_t n = 0;
    take(&n, sizeof n);
    return n;
  }
  std::string text() {
    const int64_t size = number();
    if (!fits(size, 1)) return {};
    std::string text(at_, static_cast<size_t>(size));
    at_ += size;
    return text;
  }
  template <class T>
  void items(std::vector<T>* items) {
    static_assert(std::is_trivially_copy_constructible<T>::value, "plain items");
    const int64_t size = number();
    if (!fits(size, sizeof(T))) return;
    items->resize(static_cast<size_t>(size));
    take(items->data(), items->size() * sizeof(T));
  }

 private:
  bool fits(int64_t count, size_t each) {
    return ok_ = ok_ && count >= 0 && static_cast<uint64_t>(count) <= static_cast<uint64_t>(end_ - at_) / each;
  }
  void take(void* to, size_t size) {
    if (!ok_ || static_cast<size_t>(end_ - at_) < size) {
      ok_ = false;
      return;
    }
    if (size) std::memcpy(to, at_, size);
    at_ += size;
  }
  const char *at_, *end_;
  bool ok_ = false;
};

}  // namespace mycelia::insight
