#include "server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <stdexcept>

namespace mycelia::serving {
namespace {

constexpr size_t kRead = 256 << 10;       // bytes of one recv()
constexpr size_t kOutput = 256 << 10;     // a connection's frames are gathered up to here before they are sent
constexpr uint32_t kStreamWindow = 1 << 20;
constexpr int32_t kConnectionWindow = 16 << 20;
constexpr uint32_t kFrame = 256 << 10;
constexpr size_t kFirstBody = 64 << 10;   // reserved for a message; more only as it comes, whatever its prefix says
constexpr double kGoodbye = 2;            // seconds until a connection that is over is closed from this side
constexpr size_t kSmall = 64 << 10;       // an answer that any thread sends itself,
constexpr uint64_t kFew = 4;              // if no more calls are open: else it pays to gather answers
constexpr int kTurns = 16;                // of one connection's output before others have theirs
constexpr size_t kUnread = 4 << 20;       // bytes of a streaming call's answers that its client need not have read

double monotonic() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

http2::Header header(std::string_view name, std::string_view value) {
  return {reinterpret_cast<uint8_t*>(const_cast<char*>(name.data())), reinterpret_cast<uint8_t*>(const_cast<char*>(value.data())),
          name.size(), value.size(), 0};
}

bool is_reserved(std::string_view name) {
  return name.substr(0, 5) == "grpc-" || name == "te" || name == "user-agent" || name == "host" || name == "accept-encoding";
}

}  // namespace

// One HTTP/2 stream.
struct Call {
  Connection* connection;
  Call *before = nullptr, *after = nullptr;  // of the connection's calls
  int32_t stream;
  uint64_t token = 0;  // 0: refused before it got one
  int method = -1;

  // what came
  std::string path, content_type;
  Metadata metadata;
  size_t header_bytes = 0, header_count = 0;
  bool post = false, too_many_headers = false, headers_done = false, bad_timeout = false;
  grpc::Encoding encoding = grpc::kIdentity;
  double timeout = -1, deadline = grpc::kForever;
  bool owes = true;  // the client: the rest of headers or of a message
  double due = 0;    // when the client's patience with it ends: more must have come, or been taken, by then
  size_t held = 0;   // bytes that are charged to the client
  uint8_t prefix[grpc::kPrefix];
  size_t prefix_size = 0, declared = 0;
  std::string body;
  bool whole = false;          // of a unary call: its message has come
  bool handed_over = false;    // the token is known outside
  bool remote_closed = false;

  // what goes
  std::string output;
  size_t sent = 0;
  bool headers_sent = false, ended = false, deferred = false;
  int status = 0;
  std::string text;
};

struct Connection {
  Server* server;
  int fd;
  http2::Session* session = nullptr;
  Call* calls = nullptr;
  size_t call_count = 0;
  Peer* peer = nullptr;
  Part open_calls, bytes;
  std::string output;
  size_t sent = 0;
  size_t index;  // in the server's list
  bool is_dirty = false, dead = false, writable_watched = false, greeted = false, last_words = false, said_goodbye = false;
  double opened, idle_since, due;  // due: as that of a call, for its output
  double control_tokens, control_time;

  // Frames that cost an attacker little: true if there are too many.
  bool over_rate(double now, const Limits& limits) {
    control_tokens = std::min(limits.control_burst, control_tokens + (now - control_time) * limits.control_rate) - 1;
    control_time = now;
    return control_tokens < 0;
  }
};

// What the HTTP/2 library calls. C frames lie between these and the server: no exception may pass.
struct Callbacks {
  static Call* call_of(Server* s, http2::Session* session, int32_t stream) {
    return static_cast<Call*>(s->h2_.stream_data(session, stream));
  }

  template <class F>
  static int guarded(F&& f) noexcept {
    try {
      f();
      return 0;
    } catch (...) {  // out of memory
      return http2::kCallbackFailure;
    }
  }

  static int on_begin_headers(http2::Session* session, const http2::Frame* frame, void* user) {
    Connection* c = static_cast<Connection*>(user);
    return guarded([&] {
      Server* s = c->server;
      if (call_of(s, session, frame->head.stream_id)) return;  // trailers
      auto call = std::make_unique<Call>();
      call->connection = c;
      call->stream = frame->head.stream_id;
      call->due = s->now_ + s->limits_.stall_s;
      if (s->h2_.set_stream_data(session, call->stream, call.get())) return;
      call->after = c->calls;
      if (c->calls) c->calls->before = call.get();
      c->calls = call.release();
      ++c->call_count;
    });
  }

  static int on_header(http2::Session* session, const http2::Frame* frame, const uint8_t* name_data, size_t name_size,
                       const uint8_t* value_data, size_t value_size, uint8_t, void* user) {
    Connection* c = static_cast<Connection*>(user);
    return guarded([&] {
      Server* s = c->server;
      Call* call = call_of(s, session, frame->head.stream_id);
      if (!call || call->headers_done || call->too_many_headers) return;
      call->header_bytes += name_size + value_size + 32;  // as HTTP/2 counts
      if (++call->header_count > s->limits_.header_count || call->header_bytes > s->limits_.header_bytes) {
        call->too_many_headers = true;
        call->metadata.clear();
        return;
      }
      const std::string_view name(reinterpret_cast<const char*>(name_data), name_size);
      const std::string_view value(reinterpret_cast<const char*>(value_data), value_size);
      if (name == ":path") call->path = value;
      else if (name == ":method") call->post = value == "POST";
      else if (name == "content-type") call->content_type = value;
      else if (name == "grpc-encoding") call->encoding = grpc::encoding(value);
      else if (name == "grpc-timeout") {
        call->timeout = grpc::seconds(value);
        call->bad_timeout = call->timeout < 0;
      } else if (!name.empty() && name[0] != ':' && !is_reserved(name)) {
        call->metadata.emplace_back(name, value);
      }
    });
  }

  static int on_data_chunk(http2::Session* session, uint8_t, int32_t stream, const uint8_t* data, size_t size, void* user) {
    Connection* c = static_cast<Connection*>(user);
    return guarded([&] {
      Call* call = call_of(c->server, session, stream);
      if (call && !call->ended) c->server->data(call, data, size);
    });
  }

  static int on_frame_recv(http2::Session* session, const http2::Frame* frame, void* user) {
    Connection* c = static_cast<Connection*>(user);
    return guarded([&] {
      Server* s = c->server;
      const http2::FrameHead& head = frame->head;
      switch (head.type) {
        case http2::kHeaders:
        case http2::kData: {
          if (head.type == http2::kData && !head.length && !(head.flags & http2::kEndStream)) break;  // counted below
          Call* call = call_of(s, session, head.stream_id);
          if (!call) return;
          if (head.type == http2::kHeaders && !call->headers_done) {
            call->headers_done = true;
            s->headers_complete(call);
          }
          if (head.flags & http2::kEndStream) s->half_closed(call);
          return;
        }
        case http2::kSettings:
          if (!(head.flags & http2::kAck)) c->greeted = true;
          break;
        case http2::kPing:
        case http2::kReset:
        case http2::kPriority:
          break;
        default:
          return;
      }
      if (c->over_rate(s->now_, s->limits_) && !c->last_words) {
        c->last_words = true;
        ++s->statistics.errors;
        s->h2_.terminate(session, http2::kEnhanceYourCalm);
      }
    });
  }

  static int on_frame_send(http2::Session* session, const http2::Frame* frame, void* user) {
    Connection* c = static_cast<Connection*>(user);
    return guarded([&] {
      if (frame->head.type != http2::kHeaders || !(frame->head.flags & http2::kEndStream)) return;
      Call* call = call_of(c->server, session, frame->head.stream_id);
      // Answered before the request had ended: the client need not send the rest.
      if (call && !call->remote_closed) c->server->h2_.submit_reset(session, 0, call->stream, http2::kNoError);
    });
  }

  static int on_stream_close(http2::Session* session, int32_t stream, uint32_t, void* user) {
    Connection* c = static_cast<Connection*>(user);
    return guarded([&] {
      if (Call* call = call_of(c->server, session, stream)) c->server->drop(call);
    });
  }

  static ssize_t read(http2::Session* session, int32_t stream, uint8_t* buffer, size_t size, uint32_t* flags,
                      http2::DataSource* source, void* user) {
    Connection* c = static_cast<Connection*>(user);
    Call* call = static_cast<Call*>(source->ptr);
    const size_t count = std::min(size, call->output.size() - call->sent);
    std::memcpy(buffer, call->output.data() + call->sent, count);
    call->sent += count;
    c->server->moved(&call->due, count);
    if (call->sent < call->output.size()) return static_cast<ssize_t>(count);
    c->server->discharge(call, call->output.size());
    call->output = {};
    call->sent = 0;
    if (call->ended) {
      *flags |= http2::kDataEnd | http2::kDataNoEndStream;
      const std::string code = std::to_string(call->status);
      http2::Header trailers[] = {header("grpc-status", code), header("grpc-message", call->text)};
      if (c->server->h2_.submit_trailer(session, stream, trailers, call->text.empty() ? 1 : 2)) return http2::kCallbackFailure;
      return static_cast<ssize_t>(count);
    }
    if (count) return static_cast<ssize_t>(count);
    call->deferred = true;
    return http2::kDeferred;
  }
};

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
  h2_.set_on_begin_headers(callbacks_, Callbacks::on_begin_headers);
  h2_.set_on_header(callbacks_, Callbacks::on_header);
  h2_.set_on_data_chunk(callbacks_, Callbacks::on_data_chunk);
  h2_.set_on_frame_recv(callbacks_, Callbacks::on_frame_recv);
  h2_.set_on_frame_send(callbacks_, Callbacks::on_frame_send);
  h2_.set_on_stream_close(callbacks_, Callbacks::on_stream_close);
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
  bury();
  if (draining_ && (connections_.empty() || now_ >= drain_end_)) end();
}

void Server::end() {
  while (!connections_.empty()) close(connections_.back());
  bury();
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
void Server::bury() {
  for (Connection* c : buried_) delete c;
  buried_.clear();
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

void Server::apply(Action&& action) {
  const auto found = calls_.find(action.token);
  if (found == calls_.end() || found->second->ended) return;  // cancelled in between
  Call* call = found->second;
  if (action.message) {
    // A client that reads nothing gets no more to read; one answer may be as large as it is.
    const bool unread = call->output.size() - call->sent > kUnread;
    if (unread || (call->connection->peer->bytes.all > call->held && !may_charge(call, action.body.size()))) {
      fail(call, grpc::kResourceExhausted, "too many answers wait for this client");
      return touch(call->connection);
    }
    charge(call, action.body.size());
    if (call->output.empty()) {
      call->output = std::move(action.body);
      call->due = now_ + limits_.stall_s;
    } else {
      call->output += action.body;
    }
  }
  if (action.end) {
    finish(call, action.status, action.text);
  } else if (!call->headers_sent) {
    submit(call, true);
  } else if (call->deferred) {
    call->deferred = false;
    h2_.resume_data(call->connection->session, call->stream);
  }
  touch(call->connection);
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

void Server::accept_from(int listener, double now) {
  for (int i = 0; i < 64; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    const int fd = accept4(listener, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno != EMFILE || reserve_ < 0) return;
      ::close(reserve_);  // no descriptor is left: let the client know, rather than be woken for ever
      const int refused = accept(listener, nullptr, nullptr);
      if (refused >= 0) ::close(refused);
      reserve_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
      ++statistics.refused;
      continue;
    }
    Peer* peer = peer_of(fd, &address);
    const size_t all = connections_.size();
    if (all >= limits_.connections || peer->connections >= limits_.connections - all) {  // as many as it leaves to others
      ++statistics.refused;
      if (!peer->connections) peers_.erase(peer->name);
      ::close(fd);
      continue;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // fails on unix sockets, which need it not
    auto c = std::make_unique<Connection>();
    c->server = this;
    c->fd = fd;
    c->peer = peer;
    c->opened = c->idle_since = c->control_time = now;
    c->due = now + limits_.stall_s;
    c->control_tokens = limits_.control_burst;
    c->index = connections_.size();
    const http2::Setting settings[] = {{http2::kMaxStreams, static_cast<uint32_t>(limits_.streams)},
                                       {http2::kInitialWindow, kStreamWindow},
                                       {http2::kMaxFrame, kFrame},
                                       {http2::kMaxHeaderList, static_cast<uint32_t>(limits_.header_bytes)}};
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = c.get();
    if (h2_.server_new(&c->session, callbacks_, c.get(), option_) || h2_.submit_settings(c->session, 0, settings, 4) ||
        h2_.set_local_window(c->session, 0, 0, kConnectionWindow) || epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event)) {
      if (c->session) h2_.session_del(c->session);
      if (!peer->connections) peers_.erase(peer->name);
      ::close(fd);
      continue;
    }
    ++peer->connections;
    ++statistics.accepted;
    ++statistics.connections;
    connections_.push_back(c.get());
    touch(c.release());
  }
}

void Server::touch(Connection* c) {
  if (!c->is_dirty && !c->dead) {
    c->is_dirty = true;
    dirty_.push_back(c);
  }
}

void Server::on_readable(Connection* c) {
  const ssize_t count = recv(c->fd, input_.data(), input_.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return close(c);
  if (c->said_goodbye) return;
  statistics.bytes_in += static_cast<uint64_t>(count);
  const ssize_t used = h2_.receive(c->session, input_.data(), static_cast<size_t>(count));
  if (used != count) {
    ++statistics.errors;
    return close(c);
  }
  touch(c);
}

void Server::watch(Connection* c, bool writable) {
  if (c->writable_watched == writable) return;
  c->writable_watched = writable;
  epoll_event event{};
  event.events = EPOLLIN | (writable ? EPOLLOUT : 0u);
  event.data.ptr = c;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, c->fd, &event);
}

void Server::flush(Connection* c) {
  for (int turn = 0; turn < kTurns; ++turn) {
    while (c->output.size() - c->sent < kOutput) {
      const uint8_t* frame;
      const ssize_t size = h2_.send(c->session, &frame);
      if (size < 0) return close(c);
      if (size == 0) break;
      if (c->output.empty()) c->due = now_ + limits_.stall_s;  // the time of waiting begins
      c->output.append(reinterpret_cast<const char*>(frame), static_cast<size_t>(size));
    }
    if (c->output.empty()) {
      watch(c, false);
      if (!c->said_goodbye && !h2_.want_read(c->session) && !h2_.want_write(c->session)) {
        c->said_goodbye = true;  // the client closes when it has read all; closing first could cut off the last answer
        c->due = now_ + kGoodbye;
        shutdown(c->fd, SHUT_WR);
      }
      return;
    }
    const ssize_t count = ::send(c->fd, c->output.data() + c->sent, c->output.size() - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) return close(c);
      break;
    }
    statistics.bytes_out += static_cast<uint64_t>(count);
    moved(&c->due, static_cast<size_t>(count));
    c->sent += static_cast<size_t>(count);
    if (c->sent == c->output.size()) {
      c->output.clear();
      c->sent = 0;
    } else if (c->sent >= kOutput) {
      c->output.erase(0, c->sent);
      c->sent = 0;
    }
  }
  watch(c, true);
}

void Server::close(Connection* c) {
  if (c->dead) return;
  c->dead = true;
  while (c->calls) drop(c->calls);
  h2_.session_del(c->session);
  epoll_ctl(epoll_, EPOLL_CTL_DEL, c->fd, nullptr);  // a forked process may still have the socket open
  ::close(c->fd);
  connections_.back()->index = c->index;
  connections_[c->index] = connections_.back();
  connections_.pop_back();
  if (!--c->peer->connections) peers_.erase(c->peer->name);
  buried_.push_back(c);  // events of this round may still name it
  --statistics.connections;
}

// Time limits; once a second, and when a deadline passes.
void Server::sweep(double now) {
  next_sweep_ = now + 1;
  next_deadline_ = grpc::kForever;
  for (size_t i = connections_.size(); i-- > 0;) {
    Connection* c = connections_[i];
    if ((now > c->due && (c->said_goodbye || !c->output.empty())) || (!c->greeted && now - c->opened > limits_.handshake_s)) {
      close(c);
      continue;
    }
    for (Call *call = c->calls, *after; call; call = after) {
      after = call->after;
      const bool late = now > call->due;
      const bool waits = call->owes && !call->ended;
      if (call->token && !call->ended && now >= call->deadline) {
        fail(call, grpc::kDeadlineExceeded, "the deadline has passed");
      } else if (waits && late && !call->token) {
        h2_.terminate(c->session, http2::kCancel);
      } else if (waits && late) {
        fail(call, grpc::kDeadlineExceeded, "the request did not arrive in time");
      } else if (call->ended && late) {  // the client takes no data
        h2_.submit_reset(c->session, 0, call->stream, http2::kCancel);
      } else {
        if (!call->ended) next_deadline_ = std::min(next_deadline_, call->deadline);
        continue;
      }
      touch(c);
    }
    if (!c->call_count && now - c->idle_since > limits_.idle_s) {
      h2_.terminate(c->session, http2::kNoError);
      touch(c);
    }
  }
}

// ---- shares and patience ------------------------------------------------------------------------------------------

Peer* Server::peer_of(int fd, const void* address) {
  const auto* any = static_cast<const sockaddr*>(address);
  char text[INET6_ADDRSTRLEN + 8] = "";
  if (any->sa_family == AF_INET) {
    inet_ntop(AF_INET, &static_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (any->sa_family == AF_INET6) {
    in6_addr ip = static_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&ip)) {
      inet_ntop(AF_INET, ip.s6_addr + 12, text, sizeof text);
    } else {  // a host has as many addresses of its network as it likes
      std::memset(ip.s6_addr + 8, 0, 8);
      inet_ntop(AF_INET6, &ip, text, sizeof text);
      std::strcat(text, "/64");
    }
  } else {
    ucred process{};
    socklen_t size = sizeof process;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &process, &size);
    std::snprintf(text, sizeof text, "process %d", static_cast<int>(process.pid));
  }
  Peer* peer = &peers_[text];
  if (peer->name.empty()) peer->name = text;
  return peer;
}

bool Server::may_charge(const Call* call, size_t bytes) const {
  const Connection* c = call->connection;
  return buffered_ + bytes <= limits_.buffered && byte_share_.may_take(c->peer->bytes, c->bytes, bytes);
}

void Server::charge(Call* call, size_t bytes) {
  call->held += bytes;
  byte_share_.take(&call->connection->peer->bytes, &call->connection->bytes, bytes);
  buffered_ += bytes;
}

void Server::discharge(Call* call, size_t bytes) {
  call->held -= bytes;
  byte_share_.give_back(&call->connection->peer->bytes, &call->connection->bytes, bytes);
  buffered_ -= bytes;
}

// Bytes have come or gone: a client that is quick enough has all of its time again, a slow one a part of it.
void Server::moved(double* due, size_t bytes) const {
  *due = std::min(now_ + limits_.stall_s, *due + static_cast<double>(bytes) / limits_.slowest);
}

// ---- calls --------------------------------------------------------------------------------------------------------

void Server::headers_complete(Call* call) {
  if (!call->post) return respond_http(call, "405");
  if (!grpc::is_grpc(call->content_type)) return respond_http(call, "415");
  if (call->too_many_headers) return finish(call, grpc::kResourceExhausted, "the headers are too large");
  const auto found = by_path_.find(call->path);
  if (found == by_path_.end())
    return finish(call, grpc::kUnimplemented, "there is no method " + call->path.substr(0, 200));
  if (call->encoding == grpc::kUnknownEncoding)
    return finish(call, grpc::kUnimplemented, "grpc-encoding must be identity, gzip or deflate");
  if (call->bad_timeout) return finish(call, grpc::kInternal, "grpc-timeout is malformed");
  if (draining_) return finish(call, grpc::kUnavailable, "the server is stopping");
  Connection* c = call->connection;
  if (calls_.size() >= limits_.calls) return finish(call, grpc::kResourceExhausted, "too many calls are open");
  if (!call_share_.may_take(c->peer->calls, c->open_calls, 1))
    return finish(call, grpc::kResourceExhausted, "this client has too many open calls");
  call->method = found->second;
  call->token = next_token_++;
  calls_[call->token] = call;
  ++statistics.calls;
  ++statistics.open_calls;
  call_share_.take(&c->peer->calls, &c->open_calls, 1);
  if (call->timeout >= 0) {
    call->deadline = now_ + call->timeout;
    next_deadline_ = std::min(next_deadline_, call->deadline);
  }
  if (methods_[static_cast<size_t>(call->method)].streaming) {
    call->handed_over = true;
    push({Kind::kOpen, call->token, call->method, call->encoding, {}, std::move(call->metadata), call->timeout,
          c->peer->name});
  }
}

// A message begins: its prefix is complete. False: the call has failed.
bool Server::begin_message(Call* call) {
  call->declared = grpc::size_of(call->prefix);
  if (call->declared > limits_.message) {
    fail(call, grpc::kResourceExhausted, "a message of " + std::to_string(call->declared) + " bytes is larger than the limit of " +
                                             std::to_string(limits_.message));
  } else if (call->prefix[0] > 1) {
    fail(call, grpc::kInternal, "the message's first byte is neither 0 nor 1");
  } else if (call->prefix[0] == 1 && call->encoding == grpc::kIdentity) {
    fail(call, grpc::kInternal, "a compressed message without grpc-encoding");
  } else {
    call->body.reserve(std::min(call->declared, kFirstBody));
    return true;
  }
  return false;
}

void Server::data(Call* call, const uint8_t* bytes, size_t size) {
  if (!call->token) return;
  if (!call->owes && size) {  // another message begins
    call->owes = true;
    call->due = now_ + limits_.stall_s;
  }
  moved(&call->due, size);
  for (;;) {
    if (call->whole) {
      if (size) fail(call, grpc::kInternal, "a unary call has one message");
      return;
    }
    if (call->prefix_size < grpc::kPrefix) {
      const size_t part = std::min(size, grpc::kPrefix - call->prefix_size);
      std::memcpy(call->prefix + call->prefix_size, bytes, part);
      call->prefix_size += part;
      bytes += part;
      size -= part;
      if (call->prefix_size < grpc::kPrefix || !begin_message(call)) return;
    }
    const size_t part = std::min(size, call->declared - call->body.size());
    if (!may_charge(call, part)) return fail(call, grpc::kResourceExhausted, "too many requests are waiting");
    if (call->body.capacity() - call->body.size() < part)
      call->body.reserve(std::min(call->declared, std::max(2 * call->body.capacity(), call->body.size() + part)));
    call->body.append(reinterpret_cast<const char*>(bytes), part);
    charge(call, part);
    bytes += part;
    size -= part;
    if (call->body.size() < call->declared) return;
    if (!methods_[static_cast<size_t>(call->method)].streaming) {
      call->whole = true;
      continue;
    }
    const grpc::Encoding encoding = call->prefix[0] ? call->encoding : grpc::kIdentity;
    discharge(call, call->declared);
    push({Kind::kMessage, call->token, call->method, encoding, std::move(call->body), {}, -1, {}});
    call->body = {};
    call->prefix_size = 0;
    call->owes = false;
    if (!size) return;
  }
}

void Server::half_closed(Call* call) {
  call->remote_closed = true;
  call->owes = false;
  if (!call->token || call->ended) return;
  const bool streaming = methods_[static_cast<size_t>(call->method)].streaming;
  if (streaming) {
    if (call->prefix_size) return fail(call, grpc::kInternal, "the last message is cut off");
    return push({Kind::kEnd, call->token, call->method, grpc::kIdentity, {}, {}, -1, {}});
  }
  if (!call->whole) return fail(call, grpc::kInternal, call->prefix_size ? "the message is cut off" : "the request has no message");
  call->handed_over = true;
  const double left = call->timeout < 0 ? -1 : std::max(0.0, call->deadline - now_);
  const grpc::Encoding encoding = call->prefix[0] ? call->encoding : grpc::kIdentity;
  push({Kind::kCall, call->token, call->method, encoding, std::move(call->body), std::move(call->metadata), left,
        call->connection->peer->name});
  call->body = {};
}

// HEADERS of the answer; without data it is the whole answer.
void Server::submit(Call* call, bool with_data) {
  const std::string code = std::to_string(call->status);
  http2::Header headers[] = {header(":status", "200"), header("content-type", "application/grpc"), header("grpc-status", code),
                             header("grpc-message", call->text)};
  http2::DataProvider provider{{}, Callbacks::read};
  provider.source.ptr = call;
  const size_t count = with_data ? 2 : call->text.empty() ? 3 : 4;
  call->headers_sent = true;
  h2_.submit_response(call->connection->session, call->stream, headers, count, with_data ? &provider : nullptr);
}

void Server::finish(Call* call, int status, std::string_view text) {
  call->ended = true;
  call->status = status;
  call->text = grpc::percent_encoded(text);
  call->due = now_ + limits_.stall_s;
  discharge(call, call->held - call->output.size());  // the request
  call->body = {};
  if (!call->headers_sent) {
    submit(call, !call->output.empty());
  } else if (call->deferred) {
    call->deferred = false;
    h2_.resume_data(call->connection->session, call->stream);
  }
}

void Server::fail(Call* call, int status, std::string_view text) {
  if (call->handed_over) push({Kind::kCancel, call->token, call->method, grpc::kIdentity, {}, {}, -1, {}});
  finish(call, status, text);
}

void Server::respond_http(Call* call, const char* status) {
  http2::Header headers[] = {header(":status", status)};
  call->ended = call->headers_sent = true;
  h2_.submit_response(call->connection->session, call->stream, headers, 1, nullptr);
}

// The stream is over: answered, or reset by either side, or its connection is gone.
void Server::drop(Call* call) {
  Connection* c = call->connection;
  if (call->handed_over && !call->ended) push({Kind::kCancel, call->token, call->method, grpc::kIdentity, {}, {}, -1, {}});
  discharge(call, call->held);
  if (call->token) {
    calls_.erase(call->token);
    --statistics.open_calls;
    call_share_.give_back(&c->peer->calls, &c->open_calls, 1);
  }
  (call->before ? call->before->after : c->calls) = call->after;
  if (call->after) call->after->before = call->before;
  if (!--c->call_count) c->idle_since = now_;
  h2_.set_stream_data(c->session, call->stream, nullptr);
  delete call;
}

}  // namespace mycelia::serving
