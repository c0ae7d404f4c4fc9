#include "handles.h"

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace mycelia::lite {

namespace {

struct Entry {
  const void* kind;
  std::shared_ptr<void> object;
};

struct Table {
  std::mutex guard;
  uintptr_t last = 0;
  std::unordered_map<uintptr_t, Entry> entries;
};

Table& table() {
  static Table* const instance = new Table;  // never destroyed: handles may be freed while the process exits
  return *instance;
}

uintptr_t number_of(void* handle) { return reinterpret_cast<uintptr_t>(handle); }

}  // namespace

void* publish_object(const void* kind, std::shared_ptr<void> object) {
  Table& all = table();
  const std::lock_guard<std::mutex> lock(all.guard);
  do all.last += 16;  // looks like an address; comes round after 2^28 handles where addresses have 32 bits
  while (!all.last || all.entries.count(all.last));
  all.entries[all.last] = {kind, std::move(object)};
  return reinterpret_cast<void*>(all.last);
}

std::shared_ptr<void> find_object(const void* kind, void* handle) {
  Table& all = table();
  const std::lock_guard<std::mutex> lock(all.guard);
  const auto found = all.entries.find(number_of(handle));
  return found == all.entries.end() || found->second.kind != kind ? nullptr : found->second.object;
}

std::shared_ptr<void> withdraw_object(const void* kind, void* handle) {
  Table& all = table();
  const std::lock_guard<std::mutex> lock(all.guard);
  const auto found = all.entries.find(number_of(handle));
  if (found == all.entries.end() || found->second.kind != kind) return nullptr;
  std::shared_ptr<void> object = std::move(found->second.object);
  all.entries.erase(found);
  return object;  // destroyed by the caller, outside of the lock
}

}  // namespace mycelia::lite
