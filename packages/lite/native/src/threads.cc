#include "threads.h"

#include <algorithm>

namespace mycelia::lite {

Status Threads::prepare(const Options& options) {
  const std::vector<int32_t> allowed = options.cores_for ? options.cores_for(options.affinity, "/sys/devices/system/cpu") : std::vector<int32_t>();
  cores_ = options.cores;
  for (const int32_t core : cores_) {
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), core) == allowed.end())
      return {kParameterInvalid, message({"thread_affinity_core_list names core ", core, ", which this process may not use"})};
  }
  if (cores_.empty() && options.affinity != 0) {
    cores_ = allowed;
    cores_.resize(std::min(cores_.size(), static_cast<size_t>(options.threads)));
  }
  count_ = std::max(options.threads - options.lanes() + 1, 1);
  if (options.shared_pool && !cores_.empty())
    return {kParameterInvalid, "threads that models share cannot be bound to cores for one of them"};
  if (options.shared_pool || (options.threads <= 1 && cores_.empty())) return {};
  pool_ = myc_pool_create(cores_.data(), static_cast<int32_t>(cores_.size()));
  return pool_ ? Status() : Status{kMemory, "no memory for threads"};
}

namespace {
thread_local const Threads::Use* innermost = nullptr;
}

Threads::Use::Use(const Threads& threads, int lane) : outer_(innermost), threads_(threads) {
  (void)lane;
  innermost = this;
  myc_cpu_use_pool(threads.pool_, threads.count_);
#if defined(__linux__)
  if (threads.cores_.empty() || sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(threads.cores_[static_cast<size_t>(lane) % threads.cores_.size()], &own);
  bound_ = sched_setaffinity(0, sizeof(own), &own) == 0;
#endif
}

Threads::Use::~Use() {
  innermost = outer_;
  myc_cpu_use_pool(outer_ ? outer_->threads_.pool_ : nullptr, outer_ ? outer_->threads_.count_ : 0);
#if defined(__linux__)
  if (bound_) sched_setaffinity(0, sizeof(before_), &before_);
#endif
}

}  // namespace mycelia::lite
