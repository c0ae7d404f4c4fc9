#include "callbacks.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "connection.h"

namespace mycelia::serving {
namespace {

template <class F>
int guarded(F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {  // out of memory
    return http2::kCallbackFailure;
  }
}

bool is_reserved(std::string_view name) {
  return name.substr(0, 5) == "grpc-" || name == "te" || name == "user-agent" || name == "host" || name == "accept-encoding";
}

}  // namespace

void Callbacks::install(const http2::Library& library, http2::Callbacks* callbacks) {
  library.set_on_begin_headers(callbacks, on_begin_headers);
  library.set_on_header(callbacks, on_header);
  library.set_on_data_chunk(callbacks, on_data_chunk);
  library.set_on_frame_recv(callbacks, on_frame_recv);
  library.set_on_frame_send(callbacks, on_frame_send);
  library.set_on_stream_close(callbacks, on_stream_close);
}

Call* Callbacks::call_of(Server* s, http2::Session* session, int32_t stream) {
  return static_cast<Call*>(s->h2_.stream_data(session, stream));
}

int Callbacks::on_begin_headers(http2::Session* session, const http2::Frame* frame, void* user) {
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

int Callbacks::on_header(http2::Session* session, const http2::Frame* frame, const uint8_t* name_data, size_t name_size,
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

int Callbacks::on_data_chunk(http2::Session* session, uint8_t, int32_t stream, const uint8_t* data, size_t size, void* user) {
  Connection* c = static_cast<Connection*>(user);
  return guarded([&] {
    Call* call = call_of(c->server, session, stream);
    if (call && !call->ended) c->server->data(call, data, size);
  });
}

int Callbacks::on_frame_recv(http2::Session* session, const http2::Frame* frame, void* user) {
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
        if (!(head.flags & http2::kAck)) c->has_settings = true;
        break;
      case http2::kPing:
      case http2::kReset:
      case http2::kPriority:
        break;
      default:
        return;
    }
    if (c->over_rate(s->now_, s->limits_) && !c->terminated) {
      c->terminated = true;
      ++s->statistics.errors;
      s->h2_.terminate(session, http2::kEnhanceYourCalm);
    }
  });
}

int Callbacks::on_frame_send(http2::Session* session, const http2::Frame* frame, void* user) {
  Connection* c = static_cast<Connection*>(user);
  return guarded([&] {
    if (frame->head.type != http2::kHeaders || !(frame->head.flags & http2::kEndStream)) return;
    Call* call = call_of(c->server, session, frame->head.stream_id);
    // Answered before the request had ended: the client need not send the rest.
    if (call && !call->remote_closed) c->server->h2_.submit_reset(session, 0, call->stream, http2::kNoError);
  });
}

int Callbacks::on_stream_close(http2::Session* session, int32_t stream, uint32_t, void* user) {
  Connection* c = static_cast<Connection*>(user);
  return guarded([&] {
    if (Call* call = call_of(c->server, session, stream)) c->server->drop(call);
  });
}

ssize_t Callbacks::read(http2::Session* session, int32_t stream, uint8_t* buffer, size_t size, uint32_t* flags,
                    http2::DataSource* source, void* user) {
  Connection* c = static_cast<Connection*>(user);
  Call* call = static_cast<Call*>(source->ptr);
  const size_t count = std::min(size, call->output.size() - call->sent);
  std::memcpy(buffer, call->output.data() + call->sent, count);
  call->sent += count;
  c->server->extend_timeout(&call->due, count);
  if (call->sent < call->output.size()) return static_cast<ssize_t>(count);
  c->server->discharge(call, call->output.size());
  call->output = {};
  call->sent = 0;
  if (call->ended) {
    *flags |= http2::kDataEnd | http2::kDataNoEndStream;
    const std::string code = std::to_string(call->status);
    http2::Header trailers[] = {http2::header("grpc-status", code), http2::header("grpc-message", call->text)};
    if (c->server->h2_.submit_trailer(session, stream, trailers, call->text.empty() ? 1 : 2)) return http2::kCallbackFailure;
    return static_cast<ssize_t>(count);
  }
  if (count) return static_cast<ssize_t>(count);
  call->deferred = true;
  return http2::kDeferred;
}

}  // namespace mycelia::serving
