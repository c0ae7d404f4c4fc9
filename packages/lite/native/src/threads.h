// The threads that a model runs on.
#ifndef MYCELIA_LITE_THREADS_H_
#define MYCELIA_LITE_THREADS_H_

#if defined(__linux__)
#include <sched.h>
#endif

#include <memory>

#include "mycelia/cpu.h"
#include "options.h"

namespace mycelia::lite {

class Threads {
 public:
  Threads() = default;
  ~Threads() { myc_pool_destroy(pool_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  // Errors: cores that the process may not use.
  Status prepare(const Options& options);

  // While it lives, kernels that the calling thread calls use these threads, and the thread is bound as they are.
  class Use {
   public:
    // `lane`: which of several threads that run steps at the same time.
    explicit Use(const Threads& threads, int lane = 0);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const Use* const outer_;  // of the same thread: a callback or delegate may run another model
    const Threads& threads_;
#if defined(__linux__)
    cpu_set_t before_;
    bool bound_ = false;
#endif
  };

 private:
  myc_pool* pool_ = nullptr;  // null: those of all models without a pool of their own
  int32_t count_ = 1;  // that one loop may use, its caller included
  std::vector<int32_t> cores_;
};

}  // namespace mycelia::lite

#endif
