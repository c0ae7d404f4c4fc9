// The host's side of myc_context: a thread pool of the process, pools that hosts make beside it, and one context with a
// scratch arena per thread.
//
// parallel_for gives each thread a part of the range, the same one in every loop of the same length, so that a thread
// finds in its cache what it wrote in the loop before. It takes its part from the front, in pieces that shrink with what
// is left of it; who has none left takes pieces from the end of another's part. So threads end together, and a preempted
// thread costs one piece, not a barrier. Idle workers spin shortly, then sleep. The caller never waits for a worker that
// has not taken a piece yet.
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#elif !defined(_WIN32)
#include <pthread.h>
#endif

#include "mycelia/cpu.h"

namespace {

using Clock = std::chrono::steady_clock;
using Body = void (*)(void* arg, int64_t begin, int64_t end, int32_t worker);

constexpr int kMaxThreads = 256;
constexpr auto kSpin = std::chrono::microseconds(80);  // longer than the end of a job and the gap to the next
constexpr auto kPreempted = std::chrono::microseconds(400);  // a spin this much too long means: the core was taken away
constexpr int kRestAfterPreemption = 200;                    // jobs without spinning then
constexpr int kPausesAtEnd = 10000;  // of who waits for the last pieces, some 150 us: more means that a worker has no core
constexpr int32_t kFixedPieces = 32;  // of every loop when results must not depend on threads
constexpr int64_t kShare = 2;  // a piece is this part of what is left: balance against bigger pieces

inline void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int count_cores() {
#if defined(__linux__)
  cpu_set_t set;  // respects taskset and cgroup cpusets, unlike hardware_concurrency
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
#endif
  const unsigned n = std::thread::hardware_concurrency();
  return n > 0 ? static_cast<int>(n) : 1;
}

// True on workers always and on a caller inside its own parallel_for: nested loops run inline.
thread_local bool inside_parallel = false;

class Pool {
 public:
  Pool() = default;
  // Worker i runs on cores[i % count] alone; the caller is bound by whoever calls.
  explicit Pool(std::vector<int32_t> cores) : bound_(std::move(cores)) {}
  ~Pool() {
    stop_.store(true, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    { std::lock_guard<std::mutex> lock(sleep_); }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  int threads() {
    const int n = wanted_.load(std::memory_order_relaxed);
    return n > 0 ? n : cores_;
  }

  void set_threads(int n) {
    wanted_.store(n < 0 ? 0 : n > kMaxThreads ? kMaxThreads : n, std::memory_order_relaxed);
  }

  void run(int64_t n, int64_t grain, int32_t limit, Body body, void* arg) {
    const int64_t most_pieces = n / grain;
    // A second program thread does not wait for the pool: it computes by itself.
    if (inside_parallel || limit <= 1 || most_pieces <= 1 || !busy_.try_lock()) return body(arg, 0, n, 0);
    const int helpers = start_workers(static_cast<int>(limit - 1 < most_pieces - 1 ? limit - 1 : most_pieces - 1));
    body_ = body;
    arg_ = arg;
    grain_ = grain;
    parts_ = helpers + 1;
    for (int i = 0; i < parts_; ++i) {
      const int64_t begin = n * i / parts_, end = n * (i + 1) / parts_;
      part_[i].begin = begin;
      part_[i].end.store(end, std::memory_order_relaxed);
      part_[i].left.store(end - begin, std::memory_order_relaxed);
      part_[i].taken.store(i == 0, std::memory_order_relaxed);
    }
    open_.store(helpers, std::memory_order_release);  // places for workers; publishes everything above
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    wake(helpers);

    inside_parallel = true;
    take_pieces(0);
    inside_parallel = false;

    open_.store(0, std::memory_order_seq_cst);  // nobody joins any more; wait for those who did
    wait_for_workers();
    busy_.unlock();
  }

  // In the child of a fork only the forking thread exists.
  void forget_workers() {
    started_ = 0;
    new (&workers_) std::vector<std::thread>();  // their threads cannot be joined
    active_.store(0);
    open_.store(0);
    sleepers_.store(0);
    new (&busy_) std::mutex();
    new (&sleep_) std::mutex();
    new (&wake_) std::condition_variable();
    new (&done_) std::condition_variable();
  }

 private:
  // Time that a worker without a core does not use is spent by others, not by waiting: the scheduler counts it.
  void wait_for_workers() {
    for (int spins = 0; active_.load(std::memory_order_seq_cst) != 0; ++spins) {
      if (spins < kPausesAtEnd) {
        pause_cpu();
        continue;
      }
      std::unique_lock<std::mutex> lock(sleep_);
      caller_sleeps_.store(true, std::memory_order_seq_cst);
      done_.wait(lock, [&] { return active_.load(std::memory_order_seq_cst) == 0; });
      caller_sleeps_.store(false, std::memory_order_relaxed);
    }
  }

  // Workers that a job may have: n, or fewer when the system gives no more threads.
  int start_workers(int n) {
    try {
      for (; started_ < n; ++started_)
        workers_.emplace_back([this, seen = epoch_.load(), number = started_ + 1] {
          bind(number);
          work(number, seen);
        });
    } catch (const std::system_error&) {
      return started_;
    }
    return n;
  }

  void wake(int helpers) {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    { std::lock_guard<std::mutex> lock(sleep_); }  // a worker is either before its last check or really waiting
    if (helpers >= started_) {
      wake_.notify_all();
    } else {
      for (int i = 0; i < helpers; ++i) wake_.notify_one();
    }
  }

  // A piece of what is left of a part, 0 if nothing is.
  int64_t take(std::atomic<int64_t>& left) {
    int64_t now = left.load(std::memory_order_relaxed);
    while (now > 0) {
      const int64_t share = (now + kShare - 1) / kShare;
      const int64_t piece = share > grain_ ? share : now < grain_ + grain_ / 2 ? now : grain_;
      if (left.compare_exchange_weak(now, now - piece, std::memory_order_relaxed)) return piece;
    }
    return 0;
  }

  void take_pieces(int32_t worker) {
    Part& own = part_[worker];
    while (const int64_t piece = take(own.left)) {
      const int64_t begin = own.begin;
      own.begin += piece;
      body_(arg_, begin, begin + piece, worker);
    }
    for (int32_t next = 1; next < parts_; ++next) {
      Part& other = part_[(worker + next) % parts_];
      while (const int64_t piece = take(other.left)) {
        const int64_t end = other.end.fetch_sub(piece, std::memory_order_relaxed);
        body_(arg_, end - piece, end, worker);
      }
    }
  }

  // A part for a worker: the one of its number if it is free, else another; 0 if there is none.
  int32_t part_for(int number) {
    for (int i = 0; i < parts_; ++i) {
      const int at = (number + i) % parts_;
      if (at != 0 && !part_[at].taken.exchange(true, std::memory_order_relaxed)) return at;
    }
    return 0;
  }

  void bind(int number) {
#if defined(__linux__)
    if (bound_.empty()) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(bound_[static_cast<size_t>(number) % bound_.size()], &set);
    sched_setaffinity(0, sizeof(set), &set);
#else
    (void)number;
#endif
  }

  void work(int number, uint64_t seen) {
    inside_parallel = true;
    for (;;) {
      seen = wait_for_job(seen);
      if (stop_.load(std::memory_order_relaxed)) return;
      active_.fetch_add(1, std::memory_order_seq_cst);
      // Between joining and this check the job may have ended; a job that began meanwhile is as good.
      if (open_.fetch_sub(1, std::memory_order_seq_cst) > 0) take_pieces(part_for(number));
      if (active_.fetch_sub(1, std::memory_order_seq_cst) == 1 && caller_sleeps_.load(std::memory_order_seq_cst)) {
        { std::lock_guard<std::mutex> lock(sleep_); }  // the caller is either before its check or really waiting
        done_.notify_one();
      }
    }
  }

  uint64_t wait_for_job(uint64_t seen) {
    uint64_t now = epoch_.load(std::memory_order_acquire);
    if (now != seen) return now;
    if (started_.load(std::memory_order_relaxed) < cores_ && rest_.load(std::memory_order_relaxed) <= 0) {
      const auto begin = Clock::now();
      for (;;) {
        for (int i = 0; i < 64; ++i) {
          now = epoch_.load(std::memory_order_acquire);
          if (now != seen) return now;
          pause_cpu();
        }
        const auto spent = Clock::now() - begin;
        if (spent > kPreempted) rest_.store(kRestAfterPreemption, std::memory_order_relaxed);
        if (spent > kSpin) break;
      }
    } else {
      rest_.fetch_sub(1, std::memory_order_relaxed);
    }
    std::unique_lock<std::mutex> lock(sleep_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_.wait(lock, [&] { return (now = epoch_.load(std::memory_order_seq_cst)) != seen; });
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    return now;
  }

  const int cores_ = count_cores();
  const std::vector<int32_t> bound_;
  std::vector<std::thread> workers_;
  std::atomic<bool> stop_{false};
  std::atomic<int> wanted_{0};
  std::atomic<int> started_{0};
  std::atomic<int> rest_{0};
  std::mutex busy_;  // held while a job runs

  // The job; written before open_ has places, read by workers that took one.
  Body body_ = nullptr;
  void* arg_ = nullptr;
  int64_t grain_ = 1;
  struct alignas(64) Part {
    int64_t begin;  // its owner's alone
    std::atomic<int64_t> end, left;  // whoever takes a piece from the end has taken it from `left` before
    std::atomic<bool> taken;
  };
  Part part_[kMaxThreads];
  int32_t parts_ = 1;
  alignas(64) std::atomic<uint64_t> epoch_{0};
  alignas(64) std::atomic<int> open_{0};
  std::atomic<int> active_{0};

  std::mutex sleep_;
  std::condition_variable wake_, done_;
  std::atomic<int> sleepers_{0};
  std::atomic<bool> caller_sleeps_{false};
};

// All pools, for the child of a fork.
struct Pools {
  std::mutex guard;
  std::vector<Pool*> all;
};

Pools& pools() {
  // Never destroyed: workers may still look at their pool while the process exits.
  static Pools* const instance = [] {
    Pools* p = new Pools;
#if !defined(_WIN32)
    pthread_atfork([] { pools().guard.lock(); }, [] { pools().guard.unlock(); },
                   [] {
                     new (&pools().guard) std::mutex();
                     for (Pool* pool : pools().all) pool->forget_workers();
                   });
#endif
    return p;
  }();
  return *instance;
}

Pool* listed(Pool* pool) {
  std::lock_guard<std::mutex> lock(pools().guard);
  pools().all.push_back(pool);
  return pool;
}

Pool& process_pool() {
  static Pool* const instance = listed(new Pool);
  return *instance;
}

std::atomic<bool> deterministic{false};

// A loop in pieces that depend on nothing but n and grain, whoever computes them: each has a worker number of its own,
// so that what kernels add up per worker is the same for any number of threads.
struct FixedPieces {
  int64_t n, count;
  Body body;
  void* arg;

  static void run(void* self, int64_t begin, int64_t end, int32_t) {
    const FixedPieces& f = *static_cast<FixedPieces*>(self);
    for (int64_t i = begin; i < end; ++i) {
      f.body(f.arg, f.n * i / f.count, f.n * (i + 1) / f.count, static_cast<int32_t>(i));
    }
  }
};

// Scratch memory that grows to the largest need of any kernel and is reused; kernels take it like a stack.
struct Arena {
  struct Block {
    char* data;
    int64_t begin, end;  // in the stack's addresses
  };
  std::vector<Block> blocks;

  ~Arena() {
    for (const Block& b : blocks) free(b.data);
  }

  void* take(int64_t* used, int64_t bytes) {
    bytes = bytes <= 0 ? 64 : (bytes + 63) / 64 * 64;
    if (*used == 0 && blocks.size() > 1) merge();
    for (const Block& b : blocks) {
      const int64_t at = *used > b.begin ? *used : b.begin;
      if (at + bytes <= b.end) {
        *used = at + bytes;
        return b.data + (at - b.begin);
      }
    }
    const int64_t begin = blocks.empty() ? 0 : blocks.back().end;
    int64_t size = begin > 65536 ? begin : 65536;  // at least double
    if (size < bytes) size = bytes;
    if (!add(begin, size)) return nullptr;
    *used = begin + bytes;
    return blocks.back().data;
  }

 private:
  bool add(int64_t begin, int64_t size) {
    constexpr int64_t kPage = 4096;
    size = (size + kPage - 1) / kPage * kPage;
    char* data = static_cast<char*>(aligned_alloc(kPage, static_cast<size_t>(size)));
    if (data == nullptr) return false;
    blocks.push_back({data, begin, begin + size});
    return true;
  }

  // Nothing is in use: one block of the same total size replaces all.
  void merge() {
    const int64_t total = blocks.back().end;
    for (const Block& b : blocks) free(b.data);
    blocks.clear();
    add(0, total);
  }
};

struct Context {
  myc_context base;
  Arena arena;
  Pool* pool;  // null: the process's
  int32_t threads;  // of that pool; 0: as many as the process's has
};

Pool& pool_of(const myc_context* ctx) {
  Pool* const own = static_cast<Context*>(ctx->host)->pool;
  return own != nullptr ? *own : process_pool();
}

Context& thread_context() {
  static thread_local Context context = {};
  return context;
}

int32_t thread_limit(const myc_context* ctx) {
  const int32_t own = static_cast<Context*>(ctx->host)->threads;
  return own > 0 ? own : process_pool().threads();
}

void host_parallel_for(myc_context* ctx, int64_t n, int64_t grain, Body body, void* arg) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  if (!deterministic.load(std::memory_order_relaxed)) return pool_of(ctx).run(n, grain, ctx->threads, body, arg);
  const int64_t most = n / grain;
  FixedPieces pieces{n, most < 1 ? 1 : most < kFixedPieces ? most : kFixedPieces, body, arg};
  pool_of(ctx).run(pieces.count, 1, thread_limit(ctx), FixedPieces::run, &pieces);
}

void* host_scratch(myc_context* ctx, int64_t bytes) {
  return static_cast<Context*>(ctx->host)->arena.take(&ctx->scratch_used, bytes);
}

}  // namespace

extern "C" {

myc_context* myc_cpu_context(void) {
  myc_context& c = thread_context().base;
  if (c.host == nullptr) {
    c.host = &thread_context();
    c.parallel_for = host_parallel_for;
    c.scratch = host_scratch;
  }
  c.threads = deterministic.load(std::memory_order_relaxed) ? kFixedPieces : thread_limit(&c);
  return &c;
}

void myc_cpu_set_threads(int32_t threads) { process_pool().set_threads(threads); }

myc_pool* myc_pool_create(const int32_t* cores, int32_t count) {
  try {
    return reinterpret_cast<myc_pool*>(listed(new Pool(std::vector<int32_t>(cores, cores + (cores != nullptr ? count : 0)))));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void myc_pool_destroy(myc_pool* pool) {
  if (pool == nullptr) return;
  Pool* const own = reinterpret_cast<Pool*>(pool);
  {
    std::lock_guard<std::mutex> lock(pools().guard);
    std::vector<Pool*>& all = pools().all;
    all.erase(std::find(all.begin(), all.end(), own));
  }
  delete own;
}

void myc_cpu_use_pool(myc_pool* pool, int32_t threads) {
  Context& context = thread_context();
  context.pool = reinterpret_cast<Pool*>(pool);
  context.threads = threads > kMaxThreads ? kMaxThreads : threads;
}

void myc_cpu_set_deterministic(int32_t on) { deterministic.store(on != 0, std::memory_order_relaxed); }

int32_t myc_cpu_threads(void) { return process_pool().threads(); }

const myc_kernel_table* myc_cpu_kernel_table(const char* isa) {
  static std::mutex guard;
  static myc_kernel_table table = {};
  std::lock_guard<std::mutex> lock(guard);
  if (table.kernels == nullptr) {
    const char* chosen = nullptr;
    table.kernels = myc_cpu_kernels(isa, &table.count, &chosen);
    if (table.kernels == nullptr) return nullptr;
    table.abi_version = MYC_ABI_VERSION;
    table.library = "mycelia-backend-cpu";
    table.isa = chosen;
    table.context = myc_cpu_context;
    table.set_threads = myc_cpu_set_threads;
  }
  return &table;
}

}  // extern "C"
