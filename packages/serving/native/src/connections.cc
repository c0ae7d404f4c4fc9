// Connections of the server: accepted, read, written, closed, and what they are limited to.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "connection.h"

namespace mycelia::serving {
namespace {

constexpr size_t kOutput = 256 << 10;     // a connection's frames are gathered up to here before they are sent
constexpr uint32_t kStreamWindow = 1 << 20;
constexpr int32_t kConnectionWindow = 16 << 20;
constexpr uint32_t kFrame = 256 << 10;
constexpr double kLinger = 2;            // seconds until a connection that is over is closed from this side
constexpr int kTurns = 16;                // of one connection's output before others have theirs

}  // namespace

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
  if (c->write_closed) return;
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
      if (!c->write_closed && !h2_.want_read(c->session) && !h2_.want_write(c->session)) {
        c->write_closed = true;  // the client closes when it has read all; closing first could cut off the last answer
        c->due = now_ + kLinger;
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
    extend_timeout(&c->due, static_cast<size_t>(count));
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
  closed_.push_back(c);  // events of this round may still name it
  --statistics.connections;
}

// Time limits; once a second, and when a deadline passes.
void Server::sweep(double now) {
  next_sweep_ = now + 1;
  next_deadline_ = grpc::kForever;
  for (size_t i = connections_.size(); i-- > 0;) {
    Connection* c = connections_[i];
    if ((now > c->due && (c->write_closed || !c->output.empty())) || (!c->has_settings && now - c->opened > limits_.handshake_s)) {
      close(c);
      continue;
    }
    for (Call *call = c->calls, *after; call; call = after) {
      after = call->after;
      const bool late = now > call->due;
      const bool waits = call->incomplete && !call->ended;
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

}  // namespace mycelia::serving
