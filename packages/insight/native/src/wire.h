// Reading messages in protobuf's wire format from untrusted bytes, without copies.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

namespace mycelia::insight {

struct Field {
  uint32_t number;
  uint32_t type;          // 0 varint, 1 eight bytes, 2 bytes, 5 four bytes
  uint64_t number_value;  // of types 0, 1, 5
  std::string_view bytes;

  double as_double() const {
    double value;
    std::memcpy(&value, &number_value, sizeof value);
    return value;
  }
  float as_float() const {
    const uint32_t low = static_cast<uint32_t>(number_value);
    float value;
    std::memcpy(&value, &low, sizeof value);
    return value;
  }
};

class Fields {
 public:
  explicit Fields(std::string_view message) : at_(message.data()), end_(message.data() + message.size()) {}

  // The next field; false at the end, and when the message is damaged: then ok() is false.
  bool next(Field* field) {
    if (at_ == end_ || !ok_) return false;
    uint64_t key = 0;
    if (!varint(&key) || key >> 3 == 0 || key >> 32) return fail();
    field->number = static_cast<uint32_t>(key >> 3), field->type = static_cast<uint32_t>(key & 7);
    field->number_value = 0, field->bytes = {};
    switch (field->type) {
      case 0:
        return varint(&field->number_value) || fail();
      case 1:
        return fixed(8, field);
      case 5:
        return fixed(4, field);
      case 2: {
        uint64_t size = 0;
        if (!varint(&size) || size > static_cast<uint64_t>(end_ - at_)) return fail();
        field->bytes = {at_, static_cast<size_t>(size)};
        at_ += size;
        return true;
      }
      default:
        return fail();
    }
  }
  bool ok() const { return ok_; }

 private:
  bool fail() { return ok_ = false; }
  bool fixed(size_t size, Field* field) {
    if (static_cast<size_t>(end_ - at_) < size) return fail();
    std::memcpy(&field->number_value, at_, size);
    at_ += size;
    return true;
  }
  bool varint(uint64_t* value) {
    uint64_t sum = 0;
    for (int shift = 0; shift < 70 && at_ != end_; shift += 7) {
      const uint64_t byte = static_cast<uint8_t>(*at_++);
      if (shift < 64) sum |= (byte & 127) << shift;
      if (!(byte & 128)) return *value = sum, true;
    }
    return false;
  }

  const char *at_, *end_;
  bool ok_ = true;
};

}  // namespace mycelia::insight
