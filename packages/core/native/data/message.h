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

}  // namespace mycelia::data
