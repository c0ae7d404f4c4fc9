// Files of a data dump. A large one is copied piece by piece into one buffer, which stays in the processor's cache, and goes from there
// to the disk: the page cache would take a page of memory for each of its pages, which costs more than the copy where a virtual
// machine has to ask its host for them, and would put out what the training reads.
#include "dump_folder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace mycelia {
namespace {

constexpr size_t kBuffer = size_t(2) << 20;        // a huge page: one piece of memory for the disk
constexpr size_t kWorthDirect = size_t(256) << 10;  // bytes of a file
// A slower disk keeps a step waiting for longer than copies into the page cache take: that is seen by the first files of a step.
constexpr size_t kTried = size_t(32) << 20;
constexpr double kLeastRate = 100e6;  // bytes a second

// One buffer is kept for the next dump; guarded by the interpreter's lock.
char* kept_buffer = nullptr;

char* new_buffer() {
  char* raw = static_cast<char*>(mmap(nullptr, 2 * kBuffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (raw == MAP_FAILED) return nullptr;
  char* start = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(raw) + kBuffer - 1) / kBuffer * kBuffer);
  if (start > raw) munmap(raw, static_cast<size_t>(start - raw));
  munmap(start + kBuffer, static_cast<size_t>(raw + kBuffer - start));
#ifdef MADV_HUGEPAGE
  madvise(start, kBuffer, MADV_HUGEPAGE);
#endif
  return start;
}

// `parts` without their first `bytes`.
void skip(iovec (&parts)[2], size_t bytes) {
  for (iovec& part : parts) {
    const size_t here = std::min(bytes, part.iov_len);
    part.iov_base = static_cast<char*>(part.iov_base) + here;
    part.iov_len -= here;
    bytes -= here;
  }
}

// `count` bytes of `parts` from `begin` on.
void gather(const iovec (&parts)[2], size_t begin, size_t count, char* to) {
  for (const iovec& part : parts) {
    if (begin >= part.iov_len) {
      begin -= part.iov_len;
      continue;
    }
    const size_t here = std::min(count, part.iov_len - begin);
    std::memcpy(to, static_cast<const char*>(part.iov_base) + begin, here);
    to += here;
    count -= here;
    begin = 0;
  }
}

int write_all(int file, iovec (&parts)[2]) {
  while (parts[0].iov_len + parts[1].iov_len) {
    const int gone = parts[0].iov_len == 0;
    const ssize_t done = writev(file, parts + gone, 2 - gone);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    skip(parts, static_cast<size_t>(done));
  }
  return 0;
}

// Bytes that direct writes into `file` must be multiples of, 0 if its file system has none.
long direct_block(int file) {
#if defined(O_DIRECT) && defined(STATX_DIOALIGN)
  struct statx found;
  if (statx(file, "", AT_EMPTY_PATH, STATX_DIOALIGN, &found) != 0 || !(found.stx_mask & STATX_DIOALIGN)) return 0;
  const long asked = std::max(found.stx_dio_mem_align, found.stx_dio_offset_align), page = sysconf(_SC_PAGESIZE);
  if (asked <= 0 || page <= 0) return 0;
  const long block = std::max({asked, page, 4096L});  // what else is written lies on pages of its own
  return static_cast<long>(kBuffer) % block == 0 ? block : 0;
#else
  static_cast<void>(file);
  return 0;
#endif
}

bool set_direct(int file, bool on) {
#ifdef O_DIRECT
  return fcntl(file, F_SETFL, on ? O_DIRECT : 0) == 0;
#else
  static_cast<void>(file);
  return !on;
#endif
}

}  // namespace

DumpFolder::DumpFolder() : buffer_(std::exchange(kept_buffer, nullptr)) {}

DumpFolder::~DumpFolder() {
  if (folder_ >= 0) close(folder_);
  if (!buffer_) return;
  if (kept_buffer) {
    munmap(buffer_, kBuffer);
  } else {
    kept_buffer = buffer_;
  }
}

int DumpFolder::open(const char* path) {
  folder_ = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return folder_ >= 0 ? 0 : errno;
}

bool DumpFolder::goes_direct(int file, size_t bytes) {
  if (bytes < kWorthDirect || block_ == 0) return false;
  if (block_ < 0) block_ = direct_block(file);
  const double seconds = std::chrono::duration<double>(direct_time_).count();
  if (direct_bytes_ >= kTried && static_cast<double>(direct_bytes_) < kLeastRate * seconds) block_ = 0;
  if (block_ != 0 && !buffer_) buffer_ = new_buffer();
  if (!buffer_ || (block_ != 0 && !set_direct(file, true))) block_ = 0;
  return block_ != 0;
}

// Whole blocks, `done` bytes of them: all that there are, unless the system wants to do without.
int DumpFolder::write_direct(int file, const iovec (&parts)[2], size_t* done) {
  const size_t block = static_cast<size_t>(block_), whole = (parts[0].iov_len + parts[1].iov_len) / block * block;
  const auto start = std::chrono::steady_clock::now();
  int error = 0;
  while (*done < whole && *done % block == 0) {
    const size_t piece = std::min(kBuffer, whole - *done);
    gather(parts, *done, piece, buffer_);
    const ssize_t count = write(file, buffer_, piece);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      error = count < 0 ? errno : 0;
      break;
    }
    *done += static_cast<size_t>(count);
  }
  direct_time_ += std::chrono::steady_clock::now() - start;
  direct_bytes_ += *done;
  if (error == EINVAL || error == EOPNOTSUPP) {  // it says that it can, and cannot
    block_ = 0;
    error = 0;
  }
  return error;
}

int DumpFolder::make(const char* name, const FileContent& content) {
  const auto open_new = [&] { return openat(folder_, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); };
  int file = open_new();
  if (file < 0 && errno == EEXIST && unlinkat(folder_, name, 0) == 0) file = open_new();
  if (file < 0) return errno;
  iovec parts[2] = {{const_cast<void*>(content.head), content.head_bytes}, {const_cast<void*>(content.body), content.body_bytes}};
  int error = 0;
  if (goes_direct(file, content.head_bytes + content.body_bytes)) {
    size_t done = 0;
    error = write_direct(file, parts, &done);
    skip(parts, done);
    if (!error && !set_direct(file, false)) error = errno;
  }
  if (!error) error = write_all(file, parts);
  if (close(file) != 0 && !error && errno != EINTR) error = errno;
  if (error) unlinkat(folder_, name, 0);
  return error;
}

int DumpFolder::link(const char* known, const char* name) {
  if (linkat(folder_, known, folder_, name, 0) == 0) return 0;
  if (errno == EEXIST && unlinkat(folder_, name, 0) == 0 && linkat(folder_, known, folder_, name, 0) == 0) return 0;
  return errno;
}

bool DumpFolder::means_no_links(int error) {
  return error == EPERM || error == EOPNOTSUPP || error == EMLINK || error == ENOSYS || error == EXDEV;
}

}  // namespace mycelia
