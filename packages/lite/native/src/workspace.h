// Memory for what a model computes on the way: its own, or that of models that run one at a time.
#ifndef MYCELIA_LITE_WORKSPACE_H_
#define MYCELIA_LITE_WORKSPACE_H_

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "memory.h"

namespace mycelia::lite {

// Arenas by level: that of a model's first stage, and of stages and subgraphs that run while the ones before wait. Nothing lies in
// them from run to run.
class Workspace {
 public:
  // At least so many bytes; null if there is no memory. Who has the workspace alone calls.
  uint8_t* arena(size_t level, size_t bytes) {
    if (arenas_.size() <= level) arenas_.resize(level + 1);
    Memory& arena = arenas_[level];
    const bool wastes = level == 0 && !shared_ && arena.size() / 4 > bytes;
    if (!arena.data() || arena.size() < bytes || wastes) {
      Memory fresh(bytes);
      if (!fresh.data()) return nullptr;
      arena = std::move(fresh);
      moves_ += level == 0;
    }
    return arena.data();
  }
  // How often the first arena moved: addresses in it are of one number.
  uint64_t moves() const { return moves_; }
  size_t bytes() const {
    size_t sum = 0;
    for (const Memory& arena : arenas_) sum += arena.size();
    return sum;
  }
  // Before another model gets it: it is not made smaller for one of them.
  void share() { shared_ = true; }

  // Has the workspace alone; waits for other threads that do. False in a callback of a run of this thread, if that has it or another
  // thread does: two that wait for one another would wait for ever.
  class Use {
   public:
    explicit Use(Workspace& workspace) : workspace_(workspace) {
      if (workspace_.user_.load() == std::this_thread::get_id()) return;
      if (!held()) workspace_.guard_.lock();
      else if (!workspace_.guard_.try_lock()) return;
      fine_ = true;
      ++held();
      workspace_.user_.store(std::this_thread::get_id());
    }
    ~Use() {
      if (!fine_) return;
      --held();
      workspace_.user_.store(std::thread::id());
      workspace_.guard_.unlock();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    explicit operator bool() const { return fine_; }

   private:
    static int& held();  // workspaces that this thread has

    Workspace& workspace_;
    bool fine_ = false;
  };

 private:
  std::mutex guard_;
  std::atomic<std::thread::id> user_{};
  std::vector<Memory> arenas_;
  uint64_t moves_ = 0;
  std::atomic<bool> shared_{false};
};

}  // namespace mycelia::lite

#endif
