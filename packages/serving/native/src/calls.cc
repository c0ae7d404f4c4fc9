// Calls of the server: what came of a request, what goes of its answer, and what both are charged.
#include <algorithm>
#include <cstring>

#include "callbacks.h"
#include "connection.h"

namespace mycelia::serving {
namespace {

constexpr size_t kFirstBody = 64 << 10;   // reserved for a message; more only as it comes, whatever its prefix says
constexpr size_t kUnread = 4 << 20;       // bytes of a streaming call's answers that its client need not have read

}  // namespace

// ---- shares and timeouts ------------------------------------------------------------------------------------------

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
void Server::extend_timeout(double* due, size_t bytes) const {
  *due = std::min(now_ + limits_.stall_s, *due + static_cast<double>(bytes) / limits_.slowest);
}

// ---- requests ------------------------------------------------------------------------------------------------------

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
  if (!call->incomplete && size) {  // another message begins
    call->incomplete = true;
    call->due = now_ + limits_.stall_s;
  }
  extend_timeout(&call->due, size);
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
    call->incomplete = false;
    if (!size) return;
  }
}

void Server::half_closed(Call* call) {
  call->remote_closed = true;
  call->incomplete = false;
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

// ---- answers -------------------------------------------------------------------------------------------------------

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

// HEADERS of the answer; without data it is the whole answer.
void Server::submit(Call* call, bool with_data) {
  const std::string code = std::to_string(call->status);
  http2::Header headers[] = {http2::header(":status", "200"), http2::header("content-type", "application/grpc"),
                             http2::header("grpc-status", code), http2::header("grpc-message", call->text)};
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
  http2::Header headers[] = {http2::header(":status", status)};
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
