// Event files by the calls of POSIX, or of the C library of Windows.
#include "event_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#if defined(_WIN32)
#include <io.h>
#include <process.h>
#else
#include <unistd.h>
#endif

#include "mycelia/crc32c.h"

namespace mycelia::data {
namespace {

constexpr size_t kWaiting = 8192;   // bytes from which records are written
constexpr double kLongest = 1.0;    // seconds that a record waits when others come

#if defined(_WIN32)
constexpr int kFlags = _O_WRONLY | _O_CREAT | _O_APPEND | _O_BINARY, kOwn = _S_IREAD | _S_IWRITE, kReadOnly = _S_IREAD;
long process() { return _getpid(); }
int open_file(const char* path) { return _open(path, kFlags, kOwn); }
int64_t write_some(int file, const char* data, size_t size) { return _write(file, data, static_cast<unsigned>(size < (1u << 30) ? size : 1u << 30)); }
int64_t end_of(int file) { return _lseeki64(file, 0, SEEK_END); }
int cut(int file, int64_t size) { return _chsize_s(file, size); }
int close_file(int file) { return _close(file); }
int allow(const std::string& path, int mode) { return _chmod(path.c_str(), mode); }
#else
constexpr int kOwn = 0600, kReadOnly = 0400;
long process() { return static_cast<long>(getpid()); }
int open_file(const char* path) { return ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kOwn); }
int64_t write_some(int file, const char* data, size_t size) { return ::write(file, data, size); }
int64_t end_of(int file) { return lseek(file, 0, SEEK_END); }
int cut(int file, int64_t size) { return ftruncate(file, size); }
int close_file(int file) { return ::close(file); }
int allow(const std::string& path, int mode) { return chmod(path.c_str(), static_cast<mode_t>(mode)); }
#endif

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

uint32_t masked(const char* data, size_t size) {
  const uint32_t crc = mycelia::crc32c(reinterpret_cast<const uint8_t*>(data), size);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

void put_record(const std::string& message, std::string* out) {
  const size_t at = out->size();
  out->resize(at + message.size() + 16);
  char* to = &(*out)[at];
  const auto put = [](char* place, auto value) { std::memcpy(place, &value, sizeof value); };
  put(to, static_cast<uint64_t>(message.size()));
  put(to + 8, masked(to, 8));
  std::memcpy(to + 12, message.data(), message.size());
  put(to + 12 + message.size(), masked(message.data(), message.size()));
}

EventFile::EventFile(std::string path, int64_t limit, std::string first)
    : path_(std::move(path)), first_(std::move(first)), limit_(limit), process_(process()) {}

EventFile::~EventFile() {
  close();
}

// Asked before the lock is taken: in the child of a fork nobody gives back what another thread of the parent held.
bool EventFile::is_ours() const { return process() == process_; }

EventFile::Outcome EventFile::put(const std::string& message) {
  if (!is_ours()) return Outcome::kEnded;
  std::lock_guard<std::mutex> lock(guard_);
  if (ended_) return Outcome::kEnded;
  const int64_t size = static_cast<int64_t>(message.size()) + 16;
  if (limit_ >= 0 && size_ + size > limit_) {
    const int error = write_out();
    end();
    errno = error;
    return error ? Outcome::kFailed : Outcome::kFull;
  }
  if (file_ < 0) {
    if (const int error = open()) {
      ended_ = true;
      errno = error;
      return Outcome::kFailed;
    }
    if (!first_.empty()) put_record(first_, &waiting_);
  }
  const double time = now();
  if (waiting_.empty()) waiting_since_ = time;
  put_record(message, &waiting_);
  size_ += size;
  if (waiting_.size() < kWaiting && time - waiting_since_ < kLongest) return Outcome::kTaken;
  errno = write_out();
  return errno ? Outcome::kFailed : Outcome::kTaken;
}

int EventFile::flush() {
  if (!is_ours()) return 0;
  std::lock_guard<std::mutex> lock(guard_);
  return ended_ ? 0 : write_out();
}

int EventFile::close() {
  if (!is_ours()) return 0;
  std::lock_guard<std::mutex> lock(guard_);
  const int error = ended_ ? 0 : write_out();
  end();
  return error;
}

int EventFile::open() {
  file_ = open_file(path_.c_str());
  if (file_ < 0) return errno;
  allow(path_, kOwn);  // whatever mask new files have
  begin_ = end_of(file_);
  return begin_ < 0 ? errno : 0;
}

// Writes what waits; after an error cuts the file behind the last record that is whole, and ends.
int EventFile::write_out() {
  size_t done = 0;
  while (done < waiting_.size()) {
    const int64_t some = write_some(file_, waiting_.data() + done, waiting_.size() - done);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) {
      const int error = errno;
      const int64_t whole = begin_ + written_;
      if (done && end_of(file_) == whole + static_cast<int64_t>(done)) (void)cut(file_, whole);  // nobody else has appended
      end();
      return error;
    }
    done += static_cast<size_t>(some);
  }
  written_ += static_cast<int64_t>(done);
  waiting_.clear();
  return 0;
}

void EventFile::end() {
  ended_ = true;
  waiting_ = std::string();
  if (file_ < 0) return;
  close_file(file_);
  file_ = -1;
  allow(path_, kReadOnly);
}

}  // namespace mycelia::data
