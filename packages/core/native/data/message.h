// Fields of protobuf messages, appended to a text. `key` is number << 3 | wire type, below 128.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>

namespace mycelia::data {

inline void put_varint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

inline void put_number(char key, uint64_t value, std::string* out) {
  out->push_back(key);
  put_varint(value, out);
}

template <class T>
void put_fixed(char key, T value, std::string* out) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out->push_back(key);
  out->append(bytes, sizeof value);
}

inline void put_double(char key, double value, std::string* out) { put_fixed(key, value, out); }

inline void put_bytes(char key, const std::string& content, std::string* out) {
  put_number(key, content.size(), out);
  out->append(content);
}

// The fields of a message, in their order; `ok` is false once one is cut off or of a kind that is not used.
class Fields {
 public:
  Fields(const char* data, size_t size) : at_(data), end_(data + size) {}

  bool next() {
    uint64_t key;
    if (at_ == end_ || !take_varint(&key)) return false;
    number = key >> 3;
    kind = static_cast<int>(key & 7);
    if (kind == 0) return take_varint(&value);
    uint64_t length = kind == 1 ? 8 : 4;
    if (kind == 2 ? !take_varint(&length) : kind != 1 && kind != 5) return ok = false;
    if (length > static_cast<uint64_t>(end_ - at_)) return ok = false;
    data = at_, size = static_cast<size_t>(length);
    at_ += length;
    return true;
  }

  double as_double() {
    double found = 0;
    if (kind == 1) std::memcpy(&found, data, sizeof found);
    else ok = false;
    return found;
  }

  bool ok = true;
  uint64_t number = 0, value = 0;  // `value` of kind 0
  int kind = 0;
  const char* data = nullptr;  // of the other kinds
  size_t size = 0;

 private:
  bool take_varint(uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(*at_++);
      *out |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return ok = false;
  }

  const char* at_;
  const char* end_;
};

}  // namespace mycelia::data
