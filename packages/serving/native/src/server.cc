#include "server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "callbacks.h"
#include "connection.h"

namespace mycelia::serving {
namespace {

constexpr size_t kRead = 256 << 10;       // bytes of one recv()
constexpr size_t kSmall = 64 << 10;       // an answer that any thread sends itself,
constexpr uint64_t kFew = 4;              // if no more calls are open: else it pays to gather answers

double monotonic() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

// ---- life ---------------------------------------------------------------------------------------------------------

Server::Server(const http2::Library& library, std::vector<Method> methods, const Limits& limits)
    : h2_(library), methods_(std::move(methods)), limits_(limits), call_share_(limits.calls, limits.connections),
      byte_share_(limits.buffered, limits.connections), input_(kRead) {
  for (size_t i = 0; i < methods_.size(); ++i) by_path_[methods_[i].path] = static_cast<int>(i);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  reserve_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (epoll_ < 0 || wake_ < 0 || h2_.callbacks_new(&callbacks_) || h2_.option_new(&option_))
    throw std::runtime_error("no file descriptors or memory for a server");
  Callbacks::install(h2_, callbacks_);
  h2_.option_no_closed_streams(option_, 1);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;  // each write to an eventfd is an edge: it need not be read
  event.data.ptr = &wake_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
}

Server::~Server() {
  end();
  for (const auto& fd : listeners_) ::close(*fd);
  if (epoll_ >= 0) ::close(epoll_);
  if (wake_ >= 0) ::close(wake_);
  if (reserve_ >= 0) ::close(reserve_);
  if (callbacks_) h2_.callbacks_del(callbacks_);
  if (option_) h2_.option_del(option_);
}

void Server::listen(int fd) {
  listeners_.push_back(std::make_unique<int>(fd));  // a place that stays: epoll names listeners by it
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = listeners_.back().get();
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event)) throw std::runtime_error(std::strerror(errno));
}

// ---- other threads ------------------------------------------------------------------------------------------------

void Server::send(Action action) {
  const bool small = action.body.size() < kSmall && statistics.open_calls <= kFew;
  {
    std::lock_guard<std::mutex> lock(inbox_mutex_);
    inbox_.push_back(std::move(action));
  }
  if (taker_.load() == std::this_thread::get_id()) return;  // it sends when it takes again
  while (small) {
    std::unique_lock<std::mutex> state(state_, std::try_to_lock);
    if (!state) break;  // its holder looks into the inbox once more
    now_ = monotonic();
    apply_inbox();
    flush_all();
    const bool news = draining_ || !fresh_.empty();  // for the taking thread
    state.unlock();
    if (news) break;
    std::lock_guard<std::mutex> lock(inbox_mutex_);
    if (inbox_.empty()) return;
  }
  if (asleep_.exchange(false)) eventfd_write(wake_, 1);
}

void Server::stop(double grace_s) {
  {
    std::lock_guard<std::mutex> lock(inbox_mutex_);
    stop_asked_ = true;
    stop_grace_ = grace_s;
    asleep_ = false;
  }
  eventfd_write(wake_, 1);
}

// ---- the thread that takes ----------------------------------------------------------------------------------------

bool Server::take(std::vector<Event>* events, double seconds) {
  std::unique_lock<std::mutex> taking(taking_, std::try_to_lock);
  if (!taking) throw std::runtime_error("another thread is taking requests");
  std::unique_lock<std::mutex> state(state_);
  taker_ = std::this_thread::get_id();
  const double until = seconds < 0 ? grpc::kForever : monotonic() + seconds;
  do {
    step(until, &state);
  } while (fresh_.empty() && !ended_ && now_ < until);
  events->swap(fresh_);
  return !events->empty() || !ended_;
}

void Server::step(double until, std::unique_lock<std::mutex>* state) {
  if (ended_) return;
  now_ = monotonic();
  apply_inbox();
  obey_stop();
  flush_all();
  double wait = std::max(0.0, std::min({until, next_sweep_, next_deadline_, drain_end_}) - now_);
  {
    std::lock_guard<std::mutex> lock(inbox_mutex_);
    if (!inbox_.empty() || stop_asked_ || !fresh_.empty()) wait = 0;
    else asleep_ = wait > 0;
  }
  epoll_event found[256];
  state->unlock();
  const int count = epoll_wait(epoll_, found, 256, wait > 0 ? static_cast<int>(wait * 1000) + 1 : 0);
  state->lock();
  asleep_ = false;
  now_ = monotonic();
  for (int i = 0; i < count; ++i) {
    void* what = found[i].data.ptr;
    if (what == &wake_) continue;
    const auto listener = std::find_if(listeners_.begin(), listeners_.end(), [&](auto& l) { return l.get() == what; });
    if (listener != listeners_.end()) {
      accept_from(**listener, now_);
      continue;
    }
    Connection* c = static_cast<Connection*>(what);
    if (c->dead) continue;
    if (found[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) on_readable(c);
    if (!c->dead && (found[i].events & EPOLLOUT)) touch(c);
  }
  if (now_ >= next_sweep_ || now_ >= next_deadline_) sweep(now_);
  flush_all();
  free_closed();
  if (draining_ && (connections_.empty() || now_ >= drain_end_)) end();
}

void Server::end() {
  while (!connections_.empty()) close(connections_.back());
  free_closed();
  ended_ = true;
}

void Server::flush_all() {
  for (size_t i = 0; i < dirty_.size(); ++i) {
    dirty_[i]->is_dirty = false;
    if (!dirty_[i]->dead) flush(dirty_[i]);
  }
  dirty_.clear();
}

// Frees closed connections, which events of the round and the list of dirty ones may have named.
void Server::free_closed() {
  for (Connection* c : closed_) delete c;
  closed_.clear();
}

void Server::push(Event event) {
  buffered_ += cost(event);
  fresh_.push_back(std::move(event));
}

void Server::apply_inbox() {
  {
    std::lock_guard<std::mutex> lock(inbox_mutex_);
    actions_.swap(inbox_);
  }
  for (Action& action : actions_) apply(std::move(action));
  actions_.clear();
}

// Only in the taking thread: no other may close what its epoll names.
void Server::obey_stop() {
  std::lock_guard<std::mutex> lock(inbox_mutex_);
  if (!std::exchange(stop_asked_, false)) return;
  drain_end_ = std::min(drain_end_, now_ + stop_grace_);
  if (!draining_) begin_drain();
}

void Server::begin_drain() {
  draining_ = true;
  for (const auto& fd : listeners_) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, *fd, nullptr);
    ::close(*fd);
  }
  listeners_.clear();
  for (Connection* c : connections_) {
    h2_.submit_goaway(c->session, 0, h2_.last_stream(c->session), http2::kNoError, nullptr, 0);
    touch(c);
  }
}

}  // namespace mycelia::serving
