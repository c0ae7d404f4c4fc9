// An event file: records of (length, its masked CRC-32C, message, its masked CRC-32C), one behind the other.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>

namespace mycelia::data {

// Appends the record of `message`.
void put_record(const std::string& message, std::string* out);

// A file that is made with its first record, appended to, and left read-only. Whole records go to the system in one write; those
// of some bytes wait for others, a second at most when another one comes. After an error of the system it ends with the last record
// that is whole. Any thread may use it; in the child of a fork it does nothing.
class EventFile {
 public:
  // `limit`: records beyond so many bytes are dropped, and the file ends; negative: none. `first`: the first record's message, "" for
  // none; it is not counted.
  EventFile(std::string path, int64_t limit, std::string first);
  ~EventFile();

  enum class Outcome { kTaken, kFull, kEnded, kFailed };
  // kFull: the file ended with this one, kEnded: before it, kFailed: errno tells why.
  Outcome put(const std::string& message);
  // 0, or the errno with which the file ended.
  int flush();
  int close();

 private:
  bool is_ours() const;
  int open();
  int write_out();
  void end();

  const std::string path_, first_;
  const int64_t limit_;
  const long process_;
  std::mutex guard_;
  std::string waiting_;
  double waiting_since_ = 0;  // seconds
  int64_t size_ = 0, written_ = 0;  // of records but the first one; bytes of this file that are ours and whole
  int64_t begin_ = 0;               // where ours begin
  int file_ = -1;
  bool ended_ = false;
};

}  // namespace mycelia::data
