// A gRPC server without a language runtime: one thread does all input and output (epoll) inside take(), which returns
// with whole requests, all that came; answers are taken from any thread.
//
// The thread that takes requests is the one that reads them, so that a request which is answered at once needs no other
// thread. Ownership: connections, calls and HTTP/2 sessions belong to who holds `state_`. That is the thread in take(),
// except while it waits for the network; then another thread that answers sends by itself, if the answer is small.
// Otherwise it leaves the answer in `inbox_`, and wakes the taking thread. No lock is held across a system call that waits.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grpc.h"
#include "http2.h"
#include "shares.h"

namespace mycelia::serving {

// What one client gets of `connections`, `calls` and `buffered`: see Share.
struct Limits {
  size_t message = size_t{100} << 20;   // bytes of a request's message
  size_t buffered = size_t{1} << 30;    // bytes of requests that are not answered and of answers that are not sent yet
  size_t header_bytes = 16 << 10;       // of a call's headers
  size_t header_count = 100;
  size_t streams = 1000;                // open calls of a connection
  size_t calls = 32768;                 // open calls of all connections
  size_t connections = 4096;
  double handshake_s = 20;              // until a client has sent its settings
  double stall_s = 60;                  // without a byte of a request that is under way, or of an answer;
  double slowest = 16 << 10;            // bytes a second that keep this time from running out
  double idle_s = 7200;                 // without a call
  double control_rate = 500;            // pings, resets, settings, empty frames of a connection in a second,
  double control_burst = 4000;          // and at once
};

struct Method {
  std::string path;
  bool streaming;
};

enum class Kind : int {
  kCall = 0,     // a unary call, whole
  kOpen = 1,     // a call of a streaming method begins
  kMessage = 2,  // one of its messages
  kEnd = 3,      // the client has sent its last one
  kCancel = 4,   // nobody waits for the answer any more
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

struct Event {
  Kind kind;
  uint64_t token;
  int method = -1;
  grpc::Encoding encoding = grpc::kIdentity;  // of body
  std::string body;
  Metadata metadata;
  double timeout = -1;  // seconds that are left; negative: none was given
  std::string peer;     // the client; see Peer
};

struct Action {
  uint64_t token;
  bool message;      // body holds a message with its prefix
  bool end;          // the call ends with status and text
  std::string body;
  int status = 0;
  std::string text;
};

struct Statistics {
  std::atomic<uint64_t> connections{0}, accepted{0}, refused{0}, calls{0}, open_calls{0}, bytes_in{0}, bytes_out{0}, errors{0};
};

struct Call;
struct Connection;

class Server {
 public:
  Server(const http2::Library& library, std::vector<Method> methods, const Limits& limits);
  ~Server();

  void listen(int fd);  // before the first take(); the server owns it from then on
  // Serves until there are events, at most `seconds` if that is not negative; false: it has ended. One thread at a time.
  bool take(std::vector<Event>* events, double seconds);
  void taken(size_t cost) { buffered_ -= cost; }  // events with that cost were consumed
  // From any thread:
  void send(Action action);
  void stop(double grace_s);  // no new connections and calls; what is open may end within grace_s

  // Of an event until it is taken; the body of a unary call is its call's, until that is answered.
  static size_t cost(const Event& e) { return (e.kind == Kind::kMessage ? e.body.size() : 0) + 256; }

  Statistics statistics;

 private:
  friend struct Callbacks;

  void step(double until, std::unique_lock<std::mutex>* state);
  void end();
  void flush_all();
  void free_closed();
  void accept_from(int listener, double now);
  void on_readable(Connection* c);
  void flush(Connection* c);
  void close(Connection* c);
  void apply_inbox();
  void obey_stop();
  void apply(Action&& action);
  void sweep(double now);
  void begin_drain();
  void watch(Connection* c, bool writable);
  void touch(Connection* c);
  Peer* peer_of(int fd, const void* address);
  bool may_charge(const Call* call, size_t bytes) const;
  void charge(Call* call, size_t bytes);
  void discharge(Call* call, size_t bytes);
  void extend_timeout(double* due, size_t bytes) const;

  void headers_complete(Call* call);
  bool begin_message(Call* call);
  void data(Call* call, const uint8_t* bytes, size_t size);
  void half_closed(Call* call);
  void finish(Call* call, int status, std::string_view text);
  void fail(Call* call, int status, std::string_view text);  // finish, and tell those who hold the token
  void respond_http(Call* call, const char* status);
  void submit(Call* call, bool with_data);
  void drop(Call* call);
  void push(Event event);

  const http2::Library& h2_;
  const std::vector<Method> methods_;
  const Limits limits_;
  std::unordered_map<std::string, int> by_path_;
  http2::Callbacks* callbacks_ = nullptr;
  http2::Option* option_ = nullptr;

  int epoll_ = -1, wake_ = -1, reserve_ = -1;
  std::vector<std::unique_ptr<int>> listeners_;
  std::vector<Connection*> connections_, dirty_, closed_;
  std::unordered_map<uint64_t, Call*> calls_;
  std::unordered_map<std::string, Peer> peers_;  // of those with a connection
  Share call_share_, byte_share_;
  uint64_t next_token_ = 1;
  double now_ = 0, next_sweep_ = 0, next_deadline_ = grpc::kForever;
  bool draining_ = false;
  double drain_end_ = grpc::kForever;
  std::vector<uint8_t> input_;
  std::vector<Event> fresh_;     // events that were not taken yet
  std::vector<Action> actions_;  // the inbox's content while it is worked off
  std::atomic<size_t> buffered_{0};

  bool ended_ = false;
  std::mutex taking_;  // held by the thread in take()
  std::mutex state_;   // of all above; taken before inbox_mutex_
  std::atomic<std::thread::id> taker_{};  // the thread that was last in take()

  std::mutex inbox_mutex_;
  std::vector<Action> inbox_;
  bool stop_asked_ = false;
  double stop_grace_ = 0;
  std::atomic<bool> asleep_{false};  // set under the mutex, when the inbox is empty
};

}  // namespace mycelia::serving
