// The thread pool: each index once, worker numbers in range, nesting, several callers, children of a fork, scratch memory.
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "mycelia/cpu.h"

// The pool alone is under test: no kernels.
extern "C" const myc_kernel* myc_cpu_kernels(const char*, uint32_t*, const char**) { return nullptr; }

namespace {

std::atomic<int> failed{0};

struct Job {
  std::vector<std::atomic<int>> hits;
  int32_t limit;
};

void count(void* arg, int64_t begin, int64_t end, int32_t worker) {
  Job& job = *static_cast<Job*>(arg);
  if (worker < 0 || worker >= job.limit) ++failed;
  for (; begin < end; ++begin) ++job.hits[begin];
}

void run(int rounds, int64_t n, void (*body)(void*, int64_t, int64_t, int32_t) = count) {
  myc_context* ctx = myc_cpu_context();
  Job job{std::vector<std::atomic<int>>(n), ctx->threads};
  for (int r = 0; r < rounds; ++r) ctx->parallel_for(ctx, n, 1 + r % 90, body, &job);
  for (auto& hits : job.hits) failed += hits != rounds;
}

// Whoever is not the caller takes long, so that the caller goes to sleep at the end.
void slow(void* arg, int64_t begin, int64_t end, int32_t worker) {
  if (worker != 0) usleep(500);
  count(arg, begin, end, worker);
}

void nested(void*, int64_t begin, int64_t end, int32_t) {
  for (; begin < end; ++begin) run(3, 50);
}

void check_scratch() {
  myc_context* ctx = myc_cpu_context();
  for (int round = 0; round < 3; ++round) {
    char* a = static_cast<char*>(ctx->scratch(ctx, 1000));
    char* b = static_cast<char*>(ctx->scratch(ctx, 3000000));  // more than the first block
    char* c = static_cast<char*>(ctx->scratch(ctx, 0));
    if (!a || !b || !c || reinterpret_cast<uintptr_t>(a) % 64 || reinterpret_cast<uintptr_t>(b) % 64) ++failed;
    memset(a, 1, 1000);
    memset(b, 2, 3000000);
    failed += a[999] != 1;
    ctx->scratch_used = 0;
  }
}

}  // namespace

// An argument "without-fork" leaves the child out: emulators cannot start threads in it.
int main(int argc, char** argv) {
  const bool with_fork = argc < 2 || strcmp(argv[1], "without-fork") != 0;
  if (myc_cpu_kernel_table("none") != nullptr) ++failed;
  for (int32_t threads : {1, 2, 5, 2, 0}) {
    myc_cpu_set_threads(threads);
    if (threads > 0 && myc_cpu_threads() != threads) ++failed;
    run(2000, 300);
    run(3, 0);
    run(100, 300, slow);
  }
  myc_cpu_set_threads(3);
  myc_context* ctx = myc_cpu_context();
  ctx->parallel_for(ctx, 20, 1, nested, nullptr);
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) callers.emplace_back([] { run(1000, 200), check_scratch(); });
  for (std::thread& t : callers) t.join();
  check_scratch();
  callers.clear();
  const int32_t core = sched_getcpu();
  for (int i = 0; i < 3; ++i)  // each with a pool of its own, which ends with its threads
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        myc_pool* own = myc_pool_create(&core, round % 2);
        myc_cpu_use_pool(own, 1 + round % 4);
        if (myc_cpu_context()->threads != 1 + round % 4) ++failed;
        run(20, 200);
        myc_cpu_use_pool(nullptr, 2);
        run(20, 200);
        myc_pool_destroy(own);
      }
    });
  for (std::thread& t : callers) t.join();
  if (myc_cpu_context()->threads != 3) ++failed;
  if (with_fork) {
    const pid_t child = fork();
    if (child == 0) {  // its pool starts afresh
      failed = 0;
      run(200, 200);
      _exit(failed != 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  printf("%d checks failed\n", failed.load());
  return failed > 100 ? 100 : failed.load();
}
