// Event files: records of (length, its masked CRC-32C, message, its masked CRC-32C), the framing of TFRecord files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mycelia::insight {

// A record of which only the place and the fault are of use.
struct Broken {
  int64_t offset;
  std::string what;
};

// A file that may grow, be cut or be replaced while it is read.
class RecordFile {
 public:
  RecordFile(const std::string& path, int64_t offset);  // throws std::system_error
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  enum class Next { kRecord, kEnd, kBroken };
  // The next whole record. kEnd: nothing more yet, or the last one is not complete; kBroken: no length can be trusted any
  // more. A record with a wrong checksum of its message goes to `broken` and is passed over.
  Next next(std::string_view* message, std::vector<Broken>* broken);

  int64_t offset() const { return base_ + static_cast<int64_t>(begin_); }  // behind the last record
  // A checksum of some bytes at the begin and before `offset`; false if there are not so many.
  bool mark(int64_t offset, uint32_t* mark) const;
  int64_t message_offset() const { return offset() - 4 - message_size_; }

 private:
  bool fill(size_t need);  // whether so many bytes are there from begin_ on

  int descriptor_;
  int64_t base_;  // of the buffer in the file
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;
  int64_t message_size_ = 0;
};

}  // namespace mycelia::insight
