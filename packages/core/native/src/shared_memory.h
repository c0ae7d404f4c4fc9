// Memory that several processes see: arrays in it, and words that one of them writes and others wait for.
#pragma once
#include <cmath>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#endif

#include "core.h"

namespace mycelia {

// The bytes of a contiguous array; NULL with TypeError set.
char* bytes_of(PyObject* value, bool writes);
int64_t size_of(PyObject* array);

// Sums of two arrays or more of float32 or float64 in the order of the parts, divided. The result may be one of the parts.
void add_arrays(int32_t dtype, const std::vector<const char*>& parts, char* out, int64_t count, double divisor);

#ifdef __linux__

inline double monotonic() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

// Whether it is so within `seconds`, in which nothing else is done.
template <typename Is>
bool look_for(Is is_so, double seconds) {
  if (is_so()) return true;
  const double begin = monotonic();
  while (monotonic() - begin < seconds) {
    for (int i = 0; i < 32; ++i) {
      if (is_so()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }
  return false;
}

// For `most` seconds, unless the word has another value than `before`, somebody wakes those who wait for it, or a signal comes.
inline void sleep_for(const uint32_t* word, uint32_t before, double most) {
  const timespec time = {static_cast<time_t>(most), static_cast<long>((most - std::floor(most)) * 1e9)};
  syscall(SYS_futex, word, FUTEX_WAIT, before, &time, nullptr, 0);
}

inline void wake_all(const uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0); }

#endif

int init_direct_sums(PyObject* module);

}  // namespace mycelia
