// Reading messages in protobuf's wire format from untrusted bytes, without copies. Always inlined: a field that is handed over
// in registers costs a third of one that goes through memory.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

#define MYCELIA_INLINE inline __attribute__((always_inline))

namespace mycelia::insight {

struct Field {
  uint32_t key;           // number << 3 | type; compared as one, since two halves written apart are slow to read together
  uint64_t number_value;  // of types 0, 1, 5
  std::string_view bytes;  // of types 1, 2, 5

  uint32_t number() const { return key >> 3; }
  uint32_t type() const { return key & 7; }  // 0 varint, 1 eight bytes, 2 bytes, 5 four bytes
  bool is(uint32_t number, uint32_t type) const { return key == (number << 3 | type); }

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
  MYCELIA_INLINE bool next(Field* field) {
    if (at_ == end_ || fault_) return false;
    uint64_t key = 0;
    if (!varint(&key)) return false;
    if (key >> 3 == 0 || key >> 32) return fail("a field has no valid number");
    field->key = static_cast<uint32_t>(key);
    field->number_value = 0, field->bytes = {};
    switch (key & 7) {
      case 0:
        return varint(&field->number_value);
      case 1:
        return fixed<8>(field);
      case 5:
        return fixed<4>(field);
      case 2: {
        uint64_t size = 0;
        if (!varint(&size)) return false;
        if (size > static_cast<uint64_t>(end_ - at_)) return fail(kTooLong);
        field->bytes = {at_, static_cast<size_t>(size)};
        at_ += size;
        return true;
      }
      default:  // 3, 4: groups, which nobody writes any more
        static constexpr const char* kUnknown[] = {"a field has the unknown type 3", "a field has the unknown type 4", "", "a field has the unknown type 6",
                                                   "a field has the unknown type 7"};
        return fail(kUnknown[(key & 7) - 3]);
    }
  }
  bool ok() const { return !fault_; }
  const char* fault() const { return fault_; }  // what is wrong with a damaged message

 private:
  static constexpr char kTooLong[] = "a field is longer than its message";

  bool fail(const char* why) { return fault_ = why, false; }
  template <size_t kSize>
  MYCELIA_INLINE bool fixed(Field* field) {
    if (static_cast<size_t>(end_ - at_) < kSize) return fail(kTooLong);
    std::memcpy(&field->number_value, at_, kSize);
    field->bytes = {at_, kSize};
    at_ += kSize;
    return true;
  }
  MYCELIA_INLINE bool varint(uint64_t* value) {
    if (at_ != end_ && !(*at_ & 128)) return *value = static_cast<uint8_t>(*at_++), true;
    return long_varint(value);
  }
  MYCELIA_INLINE bool long_varint(uint64_t* value) {
    uint64_t sum = 0;
    for (int shift = 0; shift < 70 && at_ != end_; shift += 7) {
      const uint64_t byte = static_cast<uint8_t>(*at_++);
      if (shift < 64) sum |= (byte & 127) << shift;
      if (!(byte & 128)) return *value = sum, true;
    }
    return fail("a number is cut off");
  }

  const char *at_, *end_;
  const char* fault_ = nullptr;
};

}  // namespace mycelia::insight
