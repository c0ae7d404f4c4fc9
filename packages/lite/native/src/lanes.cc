#include "lanes.h"

#include <algorithm>
#include <system_error>

#include "exceptions.h"

namespace mycelia::lite {

std::unique_ptr<Parallel> make_lanes(int count, const Threads& threads) { return std::make_unique<Lanes>(count, threads); }

Order Lanes::order_of(const Plan& plan) const {
  const size_t count = plan.steps.size();
  Order order{std::vector<std::vector<int>>(count), std::vector<int>(count)};
  std::vector<std::vector<int>> makers(plan.values.size());  // several where each makes a part of what is read
  for (size_t s = 0; s < count; ++s) {
    std::vector<int> before;
    for (int i : plan.steps[s].inputs)
      if (i >= 0) before.insert(before.end(), makers[plan.values[i].root].begin(), makers[plan.values[i].root].end());
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (int b : before) order.after[b].push_back(static_cast<int>(s));
    order.waits[s] = static_cast<int>(before.size());
    for (int o : plan.steps[s].outputs) makers[plan.values[o].root].push_back(static_cast<int>(s));
  }
  return order;
}

std::vector<std::vector<bool>> Lanes::ancestors(const Order& order) const {
  const size_t count = order.waits.size();
  std::vector<std::vector<bool>> found(count, std::vector<bool>(count));
  for (size_t s = 0; s < count; ++s) {
    for (int later : order.after[s]) {
      for (size_t a = 0; a < s; ++a)
        if (found[s][a]) found[later][a] = true;
      found[later][s] = true;
    }
  }
  return found;
}

Lanes::Lanes(int count, const Threads& threads) : threads_(threads) {
  try {
    for (int lane = 1; lane < count; ++lane) workers_.emplace_back([this, lane] { work(lane); });
  } catch (const std::system_error&) {  // the system gives no more threads: those that there are do the work
  }
}

Lanes::~Lanes() {
  {
    const std::lock_guard<std::mutex> lock(guard_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

Status Lanes::run(const Order& order, const std::function<Status(int)>& step) {
  std::unique_lock<std::mutex> lock(guard_);
  order_ = &order;
  step_ = &step;
  waits_ = order.waits;
  left_ = waits_.size();
  failed_ = -1;
  status_ = {};
  for (size_t s = waits_.size(); s-- > 0;)  // the first one is taken first
    if (!waits_[s]) ready_.push_back(static_cast<int>(s));
  changed_.notify_all();
  while (left_ > 0 || running_ > 0) {
    take_steps(lock);
    if (left_ == 0 && running_ == 0) break;
    changed_.wait(lock);
  }
  return status_;
}

// Runs ready steps until there is none.
void Lanes::take_steps(std::unique_lock<std::mutex>& lock) {
  while (!ready_.empty()) {
    const int s = ready_.back();
    ready_.pop_back();
    ++running_;
    lock.unlock();
    Status status = caught([&] { return (*step_)(s); }, [](Status failed) { return failed; });
    lock.lock();
    --running_;
    if (left_ > 0) --left_;
    if (!status) {
      if (failed_ < 0 || s < failed_) failed_ = s, status_ = std::move(status);
      ready_.clear();
      left_ = 0;
    } else if (failed_ < 0) {
      size_t fresh = 0;
      for (int next : order_->after[s])
        if (--waits_[next] == 0) ready_.push_back(next), ++fresh;
      for (size_t i = 1; i < fresh; ++i) changed_.notify_one();  // this thread goes on with one of them
    }
    if (left_ == 0 && running_ == 0) changed_.notify_all();
  }
}

void Lanes::work(int lane) {
  const Threads::Use use(threads_, lane);
  std::unique_lock<std::mutex> lock(guard_);
  while (!stop_) {
    take_steps(lock);
    if (!stop_) changed_.wait(lock);
  }
}

}  // namespace mycelia::lite
