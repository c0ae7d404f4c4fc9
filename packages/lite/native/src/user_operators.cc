// Custom nodes of types that the program registered: their shapes and kernels are its own.
#include <map>
#include <mutex>
#include <utility>

#include "c_api/border.h"
#include "delegate.h"

namespace mycelia::lite {

namespace {

// What was registered for a type, destroyed when nothing needs it any more.
struct UserOperator {
  explicit UserOperator(const MSCustomOperator& given) : calls(given) {}
  ~UserOperator() { free_outside(calls.destroy, calls.user); }
  UserOperator(const UserOperator&) = delete;
  UserOperator& operator=(const UserOperator&) = delete;

  const MSCustomOperator calls;
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<UserOperator>> operators;
};

// Never destroyed: models may be in use while a program ends.
Registry& registry() {
  static Registry* const all = new Registry;
  return *all;
}

std::shared_ptr<UserOperator> find(const std::string& type) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  const auto found = registry().operators.find(type);
  return found == registry().operators.end() ? nullptr : found->second;
}

}  // namespace

bool Planner::user_operator(const std::string& type) {
  const std::shared_ptr<UserOperator> found = find(type);
  if (!found) return false;
  const std::string who = "the registered operator '" + type + "'";
  std::vector<int> inputs, outputs;
  for (size_t i = 0; i < node_->inputs.size(); ++i) inputs.push_back(optional_input(i));
  inputs = widened(inputs);
  if (!ok()) return true;
  struct Owner {  // what a kernel needs as long as it lives
    std::shared_ptr<UserOperator> registered;
    OfferedNode node;
  };
  const auto owner = std::make_shared<Owner>(Owner{found, {file_, *node_}});
  const OfferedNode& node = owner->node;
  node->describe(plan_, inputs, std::vector<int>(node_->outputs.size(), -1));
  std::vector<MSDataType> types(node_->outputs.size(), kMSDataTypeUnknown);
  std::vector<MSShapeInfo> shapes(node_->outputs.size());
  const MSCustomOperator& calls = found->calls;
  const MSStatus inferred = without_throwing([&] { return calls.infer(calls.user, node.handle(), types.data(), shapes.data(), shapes.size()); }, kThrown);
  if (inferred != kMSStatusSuccess) return fail(kInferFailed, who + " found no shapes: it " + text_of(inferred)), true;
  for (size_t i = 0; i < shapes.size(); ++i) {
    Value value;
    value.type.dtype = abi_dtype(types[i]);
    bool fine = value.type.dtype >= 0 && shapes[i].shape_num <= MYC_MAX_RANK;
    for (size_t d = 0; fine && d < shapes[i].shape_num; ++d) fine = shapes[i].shape[d] >= 0;
    if (!fine) return fail(kInferFailed, who + " gave output " + std::to_string(i) + " a type or a shape that cannot be"), true;
    value.type.shape.assign(shapes[i].shape, shapes[i].shape + shapes[i].shape_num);
    if (!fits(value.type)) return true;
    outputs.push_back(add(std::move(value)));
  }
  node->describe(plan_, inputs, outputs);
  const auto outside = std::make_shared<OutsideKernel>();
  const MSStatus status = without_throwing([&] { return calls.create(calls.user, node.handle(), &outside->kernel); }, kThrown);
  if (status != kMSStatusSuccess) outside->kernel = {};  // nothing was made that would have to be destroyed
  if (!outside->kernel.run) return fail(kNotSupported, who + " made no kernel: it " + text_of(status)), true;
  outside->who = who;
  outside->owner = owner;
  outside->names = node->input_names;
  outside->names.insert(outside->names.end(), node->output_names.begin(), node->output_names.end());
  outside->inputs = node->inputs;
  outside->outputs = node->outputs;
  node->forget_tensors();
  for (size_t i = 0; i < inputs.size(); ++i) outside->inputs[i].name = outside->names[i].c_str();
  for (size_t i = 0; i < outputs.size(); ++i) outside->outputs[i].name = outside->names[inputs.size() + i].c_str();
  plan_.steps.push_back({run_outside, attributes_of(outside.get()), inputs, outputs, node_index_, "registered"});
  plan_.kept.push_back(outside);
  for (size_t i = 0; i < outputs.size(); ++i) set_output(i, outputs[i]);
  return true;
}

}  // namespace mycelia::lite

MSStatus MSRegisterCustomOperator(const char* type, const MSCustomOperator* custom) {
  using namespace mycelia::lite;
  return guarded([&] {
    if (!type || !*type) return Status(kNullPointer, "the type is NULL or empty");
    if (custom && (!custom->infer || !custom->create)) return Status(kNullPointer, "infer or create of the operator is NULL");
    const auto made = custom ? std::make_shared<UserOperator>(*custom) : nullptr;
    std::shared_ptr<UserOperator> before;  // destroyed without the lock
    std::lock_guard<std::mutex> lock(registry().mutex);
    before = std::exchange(registry().operators[type], made);
    return Status();
  });
}
