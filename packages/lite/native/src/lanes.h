// Steps that do not depend on one another, at the same time.
#ifndef MYCELIA_LITE_LANES_H_
#define MYCELIA_LITE_LANES_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "plan.h"
#include "threads.h"

namespace mycelia::lite {

// What waits for what among the steps of a plan.
struct Order {
  std::vector<std::vector<int>> after;  // of each step: those that read what it makes
  std::vector<int> waits;  // of each step: how many others it waits for
};

// By address, so that a program that never asks for it does not link it (options.h).
class Parallel {
 public:
  virtual ~Parallel() = default;
  virtual Order order_of(const Plan& plan) const = 0;
  // Whether step a ends before step b begins, in whatever order they run that `order` allows: [b][a].
  virtual std::vector<std::vector<bool>> ancestors(const Order& order) const = 0;
  // Runs all steps; after a failure no further one begins. The failure of the earliest step that failed is returned.
  virtual Status run(const Order& order, const std::function<Status(int)>& step) = 0;
};

class Lanes : public Parallel {
 public:
  // `count`: steps at the same time, the caller's included.
  Lanes(int count, const Threads& threads);
  ~Lanes() override;
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  Order order_of(const Plan& plan) const override;
  std::vector<std::vector<bool>> ancestors(const Order& order) const override;
  Status run(const Order& order, const std::function<Status(int)>& step) override;

 private:
  void work(int lane);
  void take_steps(std::unique_lock<std::mutex>& lock);

  const Threads& threads_;
  std::mutex guard_;
  std::condition_variable changed_;
  bool stop_ = false;
  // The job.
  const Order* order_ = nullptr;
  const std::function<Status(int)>* step_ = nullptr;
  std::vector<int> waits_, ready_;
  size_t left_ = 0;
  int running_ = 0;
  int failed_ = -1;
  Status status_;
  std::vector<std::thread> workers_;
};

}  // namespace mycelia::lite

#endif
