// Reference-counted memory with size-class free lists.
//
// Blocks go back to a list of their size class instead of to the system, so that large results are not page-faulted in
// again for every op. Header and data of small blocks share one allocation. The GIL guards everything here.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core.h"

namespace mycelia {
namespace {

constexpr int64_t kSmall = 1024;           // up to here: bins of 64 bytes, header in front of the data
constexpr int64_t kHuge = int64_t(4) << 20;  // from here: own mapping, huge pages asked for
constexpr int64_t kPage = int64_t(2) << 20;
constexpr int kSmallBins = kSmall / 64;
constexpr int kBins = kSmallBins + 4 * 48;
constexpr int64_t kAlwaysCache = int64_t(512) << 20;  // cached bytes never handed back below this

std::vector<Storage*> bins[kBins];
uint64_t last_use[kBins];  // by `uses`, of each bin
uint64_t uses;
int64_t high_water;        // the most bytes that were in use at one time since the cache was last emptied
int64_t live_bytes, cached_bytes, peak_bytes, peak_reserved_bytes, system_allocations;
int64_t user_limit = INT64_MAX;  // bytes that live and cached blocks may take together

// Four classes per power of two: at most a quarter of a block is unused.
int bin_of(int64_t bytes, int64_t* rounded) {
  if (bytes <= kSmall) {
    const int64_t steps = bytes <= 64 ? 1 : (bytes + 63) / 64;
    *rounded = steps * 64;
    return static_cast<int>(steps - 1);
  }
  const int power = 63 - __builtin_clzll(static_cast<uint64_t>(bytes - 1));  // 2^power < bytes <= 2^(power+1)
  const int64_t step = int64_t(1) << (power - 2);
  const int64_t steps = (bytes - (int64_t(1) << power) + step - 1) / step;  // 1..4
  *rounded = (int64_t(1) << power) + steps * step;
  return kSmallBins + (power - 10) * 4 + static_cast<int>(steps - 1);
}

// More than this is refused: an overcommitting system would say yes and kill the process when it is touched.
int64_t physical_bytes() {
  static const int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return bytes > 0 ? bytes : INT64_MAX;
}

bool is_mapped(const Storage* s) { return s->bytes >= kHuge; }

void give_back(Storage* s) {
  if (s->bytes <= kSmall) {
    std::free(s);
    return;
  }
  if (is_mapped(s)) {
    munmap(s->data, static_cast<size_t>(s->bytes));
  } else {
    std::free(s->data);
  }
  std::free(s);
}

Storage* from_system(int64_t bytes) {
  if (bytes <= kSmall) {
    void* block = nullptr;
    static_assert(sizeof(Storage) <= 64, "the header of a small block is one cache line");
    if (posix_memalign(&block, 64, static_cast<size_t>(64 + bytes))) return nullptr;
    Storage* s = static_cast<Storage*>(block);
    s->data = static_cast<char*>(block) + 64;
    return s;
  }
  Storage* s = static_cast<Storage*>(std::malloc(sizeof(Storage)));
  if (!s) return nullptr;
  if (bytes >= kHuge) {
    // Over-allocate by one huge page and cut, so that the block starts on a huge page boundary.
    char* raw = static_cast<char*>(mmap(nullptr, static_cast<size_t>(bytes + kPage), PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (raw == MAP_FAILED) {
      std::free(s);
      return nullptr;
    }
    char* start = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(raw) + kPage - 1) / kPage * kPage);
    if (start > raw) munmap(raw, static_cast<size_t>(start - raw));
    char* end = start + bytes;
    char* raw_end = raw + bytes + kPage;
    if (raw_end > end) munmap(end, static_cast<size_t>(raw_end - end));
    madvise(start, static_cast<size_t>(bytes), MADV_HUGEPAGE);
    s->data = start;
    return s;
  }
  void* data = nullptr;
  if (posix_memalign(&data, 64, static_cast<size_t>(bytes))) {
    std::free(s);
    return nullptr;
  }
  s->data = static_cast<char*>(data);
  return s;
}

// Blocks of sizes that are not asked for any more make room for new ones: a sequence that grows from call to call leaves a
// block of every size class behind. What is reserved stays within an eighth of what was in use at one time; the lists that
// were not used for longest go first.
void make_room(int64_t bytes) {
  const int64_t most = std::max(high_water, live_bytes + bytes);
  while (live_bytes + cached_bytes + bytes > most + most / 8) {
    int oldest = -1;
    for (int bin = kSmallBins; bin < kBins; ++bin)
      if (!bins[bin].empty() && (oldest < 0 || last_use[bin] < last_use[oldest])) oldest = bin;
    if (oldest < 0) return;
    cached_bytes -= bins[oldest].back()->bytes;
    give_back(bins[oldest].back());
    bins[oldest].pop_back();
  }
}

}  // namespace

uint64_t last_stamp = 0;

// Four lanes, so that it runs at the speed of memory. Not meant to stand up to anyone.
uint64_t hash_bytes(const void* data, int64_t bytes) {
  constexpr uint64_t kOdd[4] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93};
  uint64_t lane[4] = {1, 2, 3, 4};
  const char* p = static_cast<const char*>(data);
  const auto mix = [](uint64_t h, uint64_t word, uint64_t odd) {
    h = (h ^ word) * odd;
    return h ^ (h >> 32);
  };
  int64_t left = bytes;
  for (; left >= 32; left -= 32, p += 32) {
    uint64_t words[4];
    std::memcpy(words, p, 32);
    for (int i = 0; i < 4; ++i) lane[i] = mix(lane[i], words[i], kOdd[i]);
  }
  for (; left > 0; left -= 8, p += 8) {
    uint64_t word = 0;
    std::memcpy(&word, p, static_cast<size_t>(left < 8 ? left : 8));
    lane[0] = mix(lane[0], word, kOdd[0]);
  }
  uint64_t h = static_cast<uint64_t>(bytes);
  for (int i = 0; i < 4; ++i) h = mix(h, lane[i], kOdd[3 - i]);
  return h;
}

Storage* storage_alloc(int64_t bytes) {
  int64_t rounded;
  if (bytes < 0 || bytes > (int64_t(1) << 46)) {
    PyErr_Format(PyExc_MemoryError, "cannot allocate a tensor of %lld bytes", static_cast<long long>(bytes));
    return nullptr;
  }
  const int bin = bin_of(bytes, &rounded);
  if (rounded >= kHuge) rounded = (rounded + 4095) / 4096 * 4096;
  Storage* s;
  last_use[bin] = ++uses;
  if (!bins[bin].empty()) {
    s = bins[bin].back();
    bins[bin].pop_back();
    cached_bytes -= s->bytes;
  } else {
    const int64_t room = std::min(physical_bytes(), user_limit) - live_bytes;
    if (rounded > kSmall) make_room(rounded);
    if (rounded > room - cached_bytes) storage_empty_cache();
    s = rounded > room ? nullptr : from_system(rounded);
    if (!s && rounded <= room) {
      storage_empty_cache();
      s = from_system(rounded);
    }
    if (!s && user_limit - live_bytes < rounded) {
      PyErr_Format(PyExc_MemoryError,
                   "out of memory: a tensor of %lld bytes was asked for, %lld bytes are in use, and the setting "
                   "max_device_memory allows %lld bytes",
                   static_cast<long long>(bytes), static_cast<long long>(live_bytes), static_cast<long long>(user_limit));
      return nullptr;
    }
    if (!s) {
      PyErr_Format(PyExc_MemoryError, "out of memory: a tensor of %lld bytes was asked for, %lld bytes are in use",
                   static_cast<long long>(bytes), static_cast<long long>(live_bytes));
      return nullptr;
    }
    ++system_allocations;
    s->bytes = rounded;
    s->bin = bin;
    s->device = kHost;
  }
  s->refs = 1;
  s->exports = 0;
  s->owner = nullptr;
  s->stamp = next_stamp();
  live_bytes += s->bytes;
  high_water = std::max(high_water, live_bytes);
  peak_bytes = std::max(peak_bytes, live_bytes);
  peak_reserved_bytes = std::max(peak_reserved_bytes, live_bytes + cached_bytes);
  return s;
}

Storage* storage_wrap(void* data, int64_t bytes, PyObject* owner) {
  Storage* s = static_cast<Storage*>(std::malloc(sizeof(Storage)));
  if (!s) {
    PyErr_NoMemory();
    return nullptr;
  }
  Py_INCREF(owner);
  *s = Storage{1, 0, bytes, static_cast<char*>(data), kForeign, kHost, owner, next_stamp()};
  return s;
}

void storage_free(Storage* s) {
  if (s->bin < 0) {
    if (s->bin == kOfDevice) device_free(s);
    Py_XDECREF(s->owner);
    std::free(s);
    return;
  }
  live_bytes -= s->bytes;
  if (s->bytes > kSmall && cached_bytes + s->bytes > std::max(kAlwaysCache, live_bytes)) {
    give_back(s);
    return;
  }
  cached_bytes += s->bytes;
  bins[s->bin].push_back(s);
}

void storage_empty_cache() {
  for (auto& bin : bins) {
    for (Storage* s : bin) give_back(s);
    bin.clear();
    bin.shrink_to_fit();
  }
  cached_bytes = 0;
  high_water = live_bytes;
}

void storage_set_limit(int64_t bytes) {
  user_limit = bytes;
  if (live_bytes + cached_bytes > bytes) storage_empty_cache();
}

int64_t storage_limit() { return user_limit; }

void storage_reset_peaks(bool live, bool reserved) {
  if (live) peak_bytes = live_bytes;
  if (reserved) peak_reserved_bytes = live_bytes + cached_bytes;
}

PyObject* storage_statistics() {
  return Py_BuildValue("{sLsLsLsLsL}", "live_bytes", static_cast<long long>(live_bytes), "cached_bytes",
                       static_cast<long long>(cached_bytes), "peak_bytes", static_cast<long long>(peak_bytes), "peak_reserved_bytes",
                       static_cast<long long>(peak_reserved_bytes), "system_allocations", static_cast<long long>(system_allocations));
}

}  // namespace mycelia
