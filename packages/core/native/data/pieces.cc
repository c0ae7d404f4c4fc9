// Pieces of a file into one buffer. Read, not mapped: a file that another process cuts short gives fewer bytes, not a signal.
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "data.h"

namespace mycelia::data {

ReadResult read_pieces(int fd, const int64_t* begins, const int64_t* sizes, size_t count, uint8_t* out) {
  constexpr int64_t kMost = 1 << 30;  // Linux reads at most 2 GiB - 4 KiB at once
  for (size_t i = 0; i < count;) {
    const size_t first = i;
    int64_t at = begins[i], left = 0;
    for (; i < count && begins[i] == at + left; ++i) left += sizes[i];  // neighbours in one call
    while (left > 0) {
      const ssize_t got = pread(fd, out, static_cast<size_t>(std::min(left, kMost)), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return {0, errno};
      if (got == 0) {  // the end: which piece lies behind it?
        size_t whole = first;
        while (begins[whole] + sizes[whole] <= at) ++whole;
        return {whole, 0};
      }
      out += got, at += got, left -= got;
    }
  }
  return {count, 0};
}

}  // namespace mycelia::data
