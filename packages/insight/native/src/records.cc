#include "records.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "mycelia/crc32c.h"

namespace mycelia::insight {
namespace {

constexpr size_t kChunk = size_t{1} << 20, kHead = 12, kFoot = 4;

uint32_t masked(const char* data, size_t size) {
  const uint32_t crc = crc32c(reinterpret_cast<const uint8_t*>(data), size);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class T>
T little(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

RecordFile::RecordFile(const std::string& path, int64_t offset) : base_(offset) {
  do {
    descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe of that name is not waited for
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), path);
  struct stat found;
  if (fstat(descriptor_, &found) != 0 || !S_ISREG(found.st_mode)) {
    close(descriptor_);
    throw std::system_error(EINVAL, std::generic_category(), path + " is not a file");
  }
}

RecordFile::~RecordFile() { close(descriptor_); }

bool RecordFile::fill(size_t need) {
  if (end_ - begin_ >= need) return true;
  if (end_ > begin_) std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  base_ += static_cast<int64_t>(begin_);
  end_ -= begin_, begin_ = 0;
  while (end_ < need) {
    // The buffer grows by what has been read: a length that lies asks for no memory.
    if (buffer_.size() < end_ + kChunk) buffer_.resize(end_ + kChunk);
    const ssize_t got = pread(descriptor_, buffer_.data() + end_, buffer_.size() - end_, base_ + static_cast<int64_t>(end_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(errno, std::generic_category(), "read");
    if (got == 0) return false;
    end_ += static_cast<size_t>(got);
  }
  return true;
}

bool RecordFile::mark(int64_t offset, uint32_t* mark) const {
  uint8_t bytes[320];
  const int64_t head = std::min<int64_t>(256, offset), foot = std::min<int64_t>(64, offset);
  if (pread(descriptor_, bytes, static_cast<size_t>(head), 0) != head ||
      pread(descriptor_, bytes + head, static_cast<size_t>(foot), offset - foot) != foot)
    return false;
  *mark = crc32c(bytes, static_cast<size_t>(head + foot));
  return true;
}

RecordFile::Next RecordFile::next(std::string_view* message, std::vector<Broken>* broken) {
  for (;;) {
    if (!fill(kHead)) return Next::kEnd;
    const char* head = buffer_.data() + begin_;
    const uint64_t size = little<uint64_t>(head);
    if (masked(head, 8) != little<uint32_t>(head + 8) || size > INT64_MAX - kHead - kFoot) {
      broken->push_back({offset(), "the checksum of a record's length is wrong"});
      return Next::kBroken;
    }
    const size_t whole = kHead + size + kFoot;
    if (!fill(whole)) return Next::kEnd;
    const char* data = buffer_.data() + begin_ + kHead;
    const bool right = masked(data, size) == little<uint32_t>(data + size);
    if (!right) broken->push_back({offset(), "the checksum of a record is wrong"});
    begin_ += whole;
    message_size_ = static_cast<int64_t>(size);
    if (!right) continue;
    *message = {data, static_cast<size_t>(size)};
    return Next::kRecord;
  }
}

}  // namespace mycelia::insight
