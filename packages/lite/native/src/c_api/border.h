// What the files of the C interface share: errors of the thread, and objects behind handles.
#ifndef MYCELIA_LITE_C_API_BORDER_H_
#define MYCELIA_LITE_C_API_BORDER_H_

#include <atomic>
#include <mutex>

#include "../exceptions.h"
#include "../handles.h"
#include "../session.h"
#include "mycelia/lite/c_api.h"

namespace mycelia::lite {

// Keeps the reason for MSGetLastError.
MSStatus told(const Status& status);
inline MSStatus refused(int code, std::string text) { return told(Status(code, std::move(text))); }

template <class Body>
MSStatus guarded(const Body& body) {
  return caught([&] { return told(body()); }, told);
}

// Handles of tensors, withdrawn together.
class Handles {
 public:
  Handles() = default;
  ~Handles() {
    if (!withdrawn_) withdraw_all();
  }
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;
  void add(std::shared_ptr<Border> tensor) { all_.push_back(publish(std::move(tensor))); }
  // The list stays as it is: other threads may read it.
  void withdraw_all() {
    withdrawn_ = true;
    for (void* handle : all_) withdraw<Border>(handle);
  }
  MSTensorHandleArray array() { return {all_.size(), all_.data()}; }
  const std::vector<MSTensorHandle>& all() const { return all_; }

 private:
  std::vector<MSTensorHandle> all_;
  bool withdrawn_ = false;
};

// True while one call has it; a second one is refused, and never waits for itself.
class Turn {
 public:
  explicit Turn(std::atomic<bool>& taken) : taken_(taken), ours_(!taken.exchange(true)) {}
  ~Turn() {
    if (ours_) taken_ = false;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return ours_; }

 private:
  std::atomic<bool>& taken_;
  const bool ours_;
};

struct Device {
  MSDeviceType type = kMSDeviceTypeCPU;
  std::string provider, provider_device;
  bool fp16 = false;
  int frequency = 3;
};

// The body of a call that a session has alone, refused while another call has it.
template <class Body>
MSStatus alone(Session& session, const Body& body) {
  if (!session.enter()) return refused(kReentered, "the model is running: it is used by one call at a time");
  struct Leave {
    Session& session;
    ~Leave() { session.leave(); }
  } leave{session};
  return guarded(body);
}

// What a context and a configuration say, both may be NULL.  Errors: kNullPointer: the context was freed.
Status options_of(MSContextHandle context, const std::shared_ptr<const Config>& config, Options* options);

// Copies the tensors of a call that are not the model's own inputs to them.
Status take_inputs(Session& session, const MSTensorHandleArray& given);

// Whether the model has the nodes that [execution_plan] names; `precision` may be null, else it gets how the model computes.
Status check_plan(const Source& source, const Options& options, std::string* precision);

// The file at `path`, read and checked.
Status read_source(const char* path, std::shared_ptr<Source>* source);

}  // namespace mycelia::lite

#endif
