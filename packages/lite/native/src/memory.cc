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
constexpr size_t kChunk = size_t{64} << 20;  // that is asked for before it is needed: pages that are not touched cost nothing

size_t rounded(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

// Large memory lies on huge pages where the system has them: packed weights are read once a run, page after page.
void advise_huge(uint8_t* data, size_t bytes) {
#ifdef MADV_HUGEPAGE
  if (bytes >= kHugePage) madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#else
  static_cast<void>(data), static_cast<void>(bytes);
#endif
}

uint8_t* allocated(size_t bytes) {
  if (!has_room(bytes)) return nullptr;
  const size_t alignment = bytes < kHugePage ? kAlignment : kHugePage;
  auto* const data = static_cast<uint8_t*>(std::aligned_alloc(alignment, rounded(bytes, alignment)));
  if (data) advise_huge(data, bytes);
  return data;
}

// Makes the pages of memory present that will all be written; where the system cannot (before Linux 5.14), they come one by one.
void populate(uint8_t* data, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = at / page * page, end = (at + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#else
  static_cast<void>(data), static_cast<void>(bytes);
#endif
}

}  // namespace

bool has_room(uint64_t bytes) {
  constexpr uint64_t kLarge = uint64_t{256} << 20;
  if (bytes < kLarge) return true;
  if (bytes > SIZE_MAX / 2) return false;
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

Memory::Memory(size_t bytes) : data_(allocated(std::max<size_t>(bytes, 1)), std::free), size_(bytes) {}

Memory Memory::zeros(size_t bytes) {
  const size_t alignment = bytes < kHugePage ? kAlignment : kHugePage;
  Memory made;
  made.size_ = bytes;
  if (!has_room(bytes)) return made;
  const std::shared_ptr<uint8_t> whole(static_cast<uint8_t*>(std::calloc(1, bytes + alignment)), std::free);
  if (!whole) return made;
  uint8_t* const data = whole.get() + (alignment - reinterpret_cast<uintptr_t>(whole.get()) % alignment);
  advise_huge(data, bytes);
  made.data_ = {whole, data};
  return made;
}

Memory Pool::take(size_t bytes) {
  total_ += bytes;
  if (total_ < kHugePage) return Memory(bytes);  // a small model has no use for a huge page
  if (bytes > chunk_.size() || used_ > chunk_.size() - bytes) {
    chunk_ = Memory(rounded(std::max(bytes, kChunk), kHugePage));
    used_ = 0;
    if (!chunk_.data()) {
      chunk_ = Memory();
      return Memory(bytes);
    }
  }
  Memory part;
  part.data_ = std::shared_ptr<uint8_t>(chunk_.data_, chunk_.data() + used_);
  part.size_ = bytes;
  populate(part.data(), bytes);
  used_ = std::min(rounded(used_ + bytes, kAlignment), chunk_.size());
  return part;
}

}  // namespace mycelia::lite
