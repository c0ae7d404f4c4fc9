// Reading FlatBuffers (https://flatbuffers.dev/internals) of unknown origin: nothing outside the file is touched, whatever it
// says. The first fault is kept in the Reader; after it every access gives its default, so that callers check once.
#ifndef MYCELIA_LITE_FLATBUFFER_H_
#define MYCELIA_LITE_FLATBUFFER_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "message.h"

namespace mycelia::lite {

class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool ok() const { return fault_.empty(); }
  const std::string& fault() const { return fault_; }
  void fail(const std::string& what, uint64_t at) {
    if (fault_.empty()) fault_ = message({what, " at byte ", at, " of ", size_});
  }

  // Whether `count` items of `item` bytes lie at `at`.
  bool holds(uint64_t at, uint64_t count, uint64_t item) const { return at <= size_ && count <= (size_ - at) / item; }

  template <class T>
  T load(uint64_t at) {
    T value{};
    if (!holds(at, 1, sizeof(T))) {
      fail("a value behind the end", at);
      return value;
    }
    std::memcpy(&value, data_ + at, sizeof(T));
    return value;
  }

  // The place that the offset stored at `at` points to.
  uint64_t follow(uint64_t at) {
    const uint32_t offset = load<uint32_t>(at);
    if (ok() && (offset == 0 || !holds(at + offset, 1, 4))) fail("an offset to behind the end", at);
    return ok() ? at + offset : 0;
  }

  const uint8_t* at(uint64_t place) const { return data_ + place; }
  uint64_t size() const { return size_; }

 private:
  const uint8_t* data_;
  uint64_t size_;
  std::string fault_;
};

// A vector of numbers in the file, which may lie at odd addresses.
template <class T>
struct Span {
  const uint8_t* data = nullptr;
  uint32_t size = 0;

  T operator[](uint32_t i) const {
    T value;
    std::memcpy(&value, data + uint64_t{i} * sizeof(T), sizeof(T));
    return value;
  }
};

class Table;

// A vector of tables or texts.
class TableSpan {
 public:
  TableSpan() = default;
  TableSpan(Reader* reader, uint64_t first, uint32_t size) : reader_(reader), first_(first), size_(size) {}
  uint32_t size() const { return size_; }
  Table operator[](uint32_t i) const;

 private:
  Reader* reader_ = nullptr;
  uint64_t first_ = 0;
  uint32_t size_ = 0;
};

// A table; fields are named by their place in the vtable (schema.h).
class Table {
 public:
  Table() = default;
  Table(Reader* reader, uint64_t place) : reader_(reader), place_(place) {
    const int64_t vtable = static_cast<int64_t>(place) - reader->load<int32_t>(place);
    if (!reader->ok()) return;
    if (vtable < 0 || !reader->holds(static_cast<uint64_t>(vtable), 1, 4)) {
      reader->fail("a vtable behind the end", place);
      return;
    }
    vtable_ = static_cast<uint64_t>(vtable);
    vtable_size_ = reader->load<uint16_t>(vtable_);
    if (!reader->holds(vtable_, vtable_size_, 1)) {
      vtable_size_ = 0;
      reader->fail("a vtable that reaches behind the end", place);
    }
  }

  explicit operator bool() const { return reader_ != nullptr; }
  const Reader& reader() const { return *reader_; }
  // The same table, whose faults go to another reader of the same bytes.
  Table with(Reader* reader) const {
    Table same = *this;
    same.reader_ = reader;
    return same;
  }
  bool has(uint16_t field) const { return offset(field) != 0; }

  template <class T>
  T get(uint16_t field, T absent = T{}) const {
    const uint64_t at = offset(field);
    return at ? reader_->load<T>(at) : absent;
  }

  Table table(uint16_t field) const {
    const uint64_t at = offset(field);
    const uint64_t place = at ? reader_->follow(at) : 0;
    return place ? Table(reader_, place) : Table();
  }

  template <class T>
  Span<T> span(uint16_t field) const {
    uint32_t count = 0;
    const uint64_t first = vector(field, sizeof(T), &count);
    return first ? Span<T>{reader_->at(first), count} : Span<T>{};
  }

  std::string_view text(uint16_t field) const {
    const Span<uint8_t> found = span<uint8_t>(field);
    return {reinterpret_cast<const char*>(found.data), found.size};
  }

  TableSpan tables(uint16_t field) const {
    uint32_t count = 0;
    const uint64_t first = vector(field, 4, &count);
    return first ? TableSpan(reader_, first, count) : TableSpan();
  }

 private:
  uint64_t offset(uint16_t field) const {
    if (!reader_ || !reader_->ok() || field + 2 > vtable_size_) return 0;
    const uint16_t found = reader_->load<uint16_t>(vtable_ + field);
    return found ? place_ + found : 0;
  }

  uint64_t vector(uint16_t field, uint64_t item, uint32_t* count) const {
    const uint64_t at = offset(field);
    const uint64_t place = at ? reader_->follow(at) : 0;
    if (!place) return 0;
    *count = reader_->load<uint32_t>(place);
    if (!reader_->holds(place + 4, *count, item)) {
      *count = 0;
      reader_->fail("a vector that reaches behind the end", place);
      return 0;
    }
    return place + 4;
  }

  Reader* reader_ = nullptr;
  uint64_t place_ = 0, vtable_ = 0;
  uint16_t vtable_size_ = 0;
};

inline Table TableSpan::operator[](uint32_t i) const {
  const uint64_t place = reader_->follow(first_ + uint64_t{i} * 4);
  return place ? Table(reader_, place) : Table();
}

}  // namespace mycelia::lite

#endif
