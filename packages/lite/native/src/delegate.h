// Other devices: what they claim of a plan becomes steps of theirs, with copies at the borders; the CPU takes the rest. And
// operators that a program computes itself: Custom nodes of types that it registered.
#ifndef MYCELIA_LITE_DELEGATE_H_
#define MYCELIA_LITE_DELEGATE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exceptions.h"
#include "handles.h"
#include "mycelia/abi.h"
#include "mycelia/lite/c_api.h"
#include "plan.h"

// A node as a program outside sees it. `data` of tensors points to constants alone.
struct MSDelegateNode {
  MSDelegateNode(const mycelia::lite::ModelFile& file, const mycelia::lite::FileNode& given);
  // The tensors, of the values by their places; absent ones have no type.
  void describe(const mycelia::lite::Plan& plan, const std::vector<int>& in, const std::vector<int>& out);

  // They point into the plan, which is built no more.
  void forget_tensors() { inputs.clear(), outputs.clear(); }

  const mycelia::lite::FileNode* node;
  std::string name, type, custom_type;
  std::vector<std::string> input_names, output_names;
  std::vector<MSDelegateTensor> inputs, outputs;
};

namespace mycelia::lite {

// A node behind a handle that looks like its address, as long as this lives.
class OfferedNode {
 public:
  OfferedNode(const ModelFile& file, const FileNode& given) : node_(std::make_shared<MSDelegateNode>(file, given)), handle_(publish(node_)) {}
  OfferedNode(OfferedNode&& other) noexcept : node_(std::move(other.node_)), handle_(std::exchange(other.handle_, nullptr)) {}
  OfferedNode& operator=(OfferedNode&&) = delete;
  ~OfferedNode() {
    if (handle_) withdraw<MSDelegateNode>(handle_);
  }
  MSDelegateNode* operator->() const { return node_.get(); }
  const MSDelegateNode* handle() const { return static_cast<const MSDelegateNode*>(handle_); }

 private:
  std::shared_ptr<MSDelegateNode> node_;
  void* handle_;
};

}  // namespace mycelia::lite

// The nodes of a plan that a delegate is offered.
struct MSDelegateModel {
  struct Claim {
    size_t first, count;
    MSDelegateKernel kernel;
  };
  std::vector<mycelia::lite::OfferedNode> nodes;
  std::vector<bool> taken;
  std::vector<std::string> reasons;  // of each node
  std::vector<Claim> claims;
  std::function<mycelia::lite::Status(size_t, size_t)> check;
};

namespace mycelia::lite {

constexpr auto kThrown = static_cast<MSStatus>(INT32_MIN);
std::string text_of(MSStatus status);  // how code from outside failed, for messages
// Calls a function from outside that frees `user`; null: there is none.
void free_outside(void (*destroy)(void*), void* user);

// A kernel from outside, which `run_outside` finds by the attributes of its step: the address of this.
struct OutsideKernel {
  MSDelegateKernel kernel{};
  std::string who;  // for messages
  std::vector<MSDelegateTensor> inputs, outputs;
  std::vector<std::string> names;  // of both, which the tensors point to
  std::shared_ptr<void> owner;  // what must live longer
  ~OutsideKernel() { free_outside(kernel.destroy, kernel.user); }
};
int32_t run_outside(const myc_call* call);
std::vector<uint8_t> attributes_of(const OutsideKernel* kernel);
MSDelegateTensor described(const Value& value, const std::string& name);

// A delegate of a context, destroyed with the last model that uses it.
struct Delegate {
  explicit Delegate(const MSDelegateCallbacks& given) : calls(given), name(given.name), offer([](Planner& planner) { planner.delegate_steps(); }) {}
  ~Delegate() { free_outside(calls.destroy, calls.user); }
  Delegate(const Delegate&) = delete;
  Delegate& operator=(const Delegate&) = delete;

  const MSDelegateCallbacks calls;
  const std::string name;
  void (*const offer)(Planner&);  // by address: a program that adds no delegate does not link it
};
using Delegates = std::vector<std::shared_ptr<Delegate>>;

}  // namespace mycelia::lite

#endif
