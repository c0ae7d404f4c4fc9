#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace mycelia::lite {

namespace {
constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;

// Whether there is room for large memory: the system promises more than it has, and ends the process when that is used.
bool has_room(size_t bytes) {
  constexpr size_t kLarge = size_t{256} << 20;
  if (bytes < kLarge) return true;
  std::FILE* const facts = std::fopen("/proc/meminfo", "r");
  if (!facts) return true;  // no Linux
  unsigned long long kilobytes, room = 0;
  char line[128];
  bool known = false;
  while (std::fgets(line, sizeof(line), facts)) {
    if (std::sscanf(line, "MemAvailable: %llu", &kilobytes) == 1) room += kilobytes, known = true;
    else if (std::sscanf(line, "SwapFree: %llu", &kilobytes) == 1) room += kilobytes;
  }
  std::fclose(facts);
  return !known || bytes / 1024 <= room;
}

// Large memory lies on huge pages where the system has them: packed weights are read once a run, page after page.
uint8_t* allocated(size_t bytes) {
  if (!has_room(bytes)) return nullptr;
  const size_t alignment = bytes < kHugePage ? kAlignment : kHugePage;
  auto* const data = static_cast<uint8_t*>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (data && bytes >= kHugePage) madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return data;
}

}  // namespace

Memory::Memory(size_t bytes) : data_(allocated(std::max<size_t>(bytes, 1))), size_(bytes) {}

Memory Memory::present(size_t bytes) {
  Memory made(bytes);
#ifdef MADV_POPULATE_WRITE  // Linux 5.14; where it fails, pages come one by one
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uintptr_t>(made.data_);
  const uintptr_t begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
  if (made.data_ && begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#endif
  return made;
}

Memory& Memory::operator=(Memory&& other) noexcept {
  if (this != &other) {
    std::free(data_);
    data_ = other.data_, size_ = other.size_;
    other.data_ = nullptr, other.size_ = 0;
  }
  return *this;
}

Memory::~Memory() { std::free(data_); }

}  // namespace mycelia::lite
