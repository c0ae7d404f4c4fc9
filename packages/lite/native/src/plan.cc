#include "plan.h"

#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "mycelia/cpu.h"
#include "mycelia/op_attrs.h"
#include "schema.h"

namespace mycelia::lite {

namespace {

constexpr size_t kAlignment = 64;
constexpr int64_t kMostIntegers = 1 << 16;  // of a shape, axes or sizes: a damaged file may name any constant

myc_tensor described(const Type& type, void* data) {
  myc_tensor t{};
  t.data = data;
  t.dtype = type.dtype;
  t.rank = type.rank();
  t.size = element_count(type.shape);
  std::copy(type.shape.begin(), type.shape.end(), t.shape);
  return t;
}

int64_t bytes_of(const Type& type) { return element_count(type.shape) * item_bytes(type.dtype); }

// Which constants of float16 stand for float32: those that are used together with values of float32.
std::vector<bool> stored_as_half(const ModelFile& file) {
  std::vector<bool> half(file.tensors.size());
  for (const FileNode& node : file.nodes) {
    const auto is_float = [&](uint32_t i) { return !file.tensors[i].data && file.tensors[i].dtype == schema::kDataType_FLOAT32; };
    if (std::none_of(node.inputs.begin(), node.inputs.end(), is_float) && std::none_of(node.outputs.begin(), node.outputs.end(), is_float)) continue;
    for (const uint32_t i : node.inputs) half[i] = half[i] || (file.tensors[i].data && file.tensors[i].dtype == schema::kDataType_FLOAT16);
  }
  return half;
}

}  // namespace

std::string text_of(const Type& type) {
  std::string text = dtype_name(type.dtype);
  text += "[";
  for (size_t i = 0; i < type.shape.size(); ++i) text += (i ? ", " : "") + std::to_string(type.shape[i]);
  return text + "]";
}

// ---- planning ----------------------------------------------------------------------------------------------------

int Planner::fail(int code, const std::string& why) {
  if (ok()) {
    const std::string kind = node_ ? name_of_operator(node_->kind) : "";
    status_ = {code, node_ ? "node '" + std::string(node_->name) + "' (" + kind + "): " + why : why};
  }
  return 0;
}

int Planner::add(Value value) {
  const int index = static_cast<int>(plan_.values.size());
  if (value.root < 0) value.root = index;
  plan_.values.push_back(std::move(value));
  return index;
}

int Planner::add(const Pack& pack) {
  Value value;
  value.type = pack.type;
  value.constant = pack.memory.data();
  return add(std::move(value));
}

int Planner::optional_input(size_t i) const { return i < node_->inputs.size() ? plan_.of_tensor[node_->inputs[i]] : -1; }

int Planner::input(size_t i) {
  const int value = optional_input(i);
  return value >= 0 ? value : fail(kOperatorAttribute, "input " + std::to_string(i) + " is missing");
}

std::vector<int64_t> Planner::integers(int value, const char* what) {
  std::vector<int64_t> found;
  if (!constant(value)) {
    fail(kNotSupported, std::string(what) + " must be a constant");
    return found;
  }
  const Type& t = type(value);
  const int64_t count = element_count(t.shape);
  if (count > kMostIntegers) fail(kOperatorAttribute, std::string(what) + " has " + std::to_string(count) + " numbers");
  for (int64_t i = 0; i < count && ok(); ++i) {
    if (t.dtype == MYC_I32) {
      int32_t n;
      std::memcpy(&n, constant(value) + i * 4, 4);
      found.push_back(n);
    } else if (t.dtype == MYC_I64) {
      int64_t n;
      std::memcpy(&n, constant(value) + i * 8, 8);
      found.push_back(n);
    } else {
      fail(kOperatorAttribute, std::string(what) + " must be int32 or int64, but is " + text_of(t));
      return {};
    }
  }
  return found;
}

bool Planner::fits(const Type& type) {
  if (type.rank() > MYC_MAX_RANK) {
    fail(kNotSupported, "the result " + text_of(type) + " has more than " + std::to_string(MYC_MAX_RANK) + " dimensions");
  } else if (element_count(type.shape) < 0) {
    fail(kInferFailed, "the result " + text_of(type) + " is too large");
  }
  return ok();
}

int Planner::view(int value, std::vector<int64_t> shape) {
  Value made;
  made.type = {type(value).dtype, std::move(shape)};
  if (!fits(made.type)) return 0;
  if (element_count(made.type.shape) != element_count(type(value).shape))
    return fail(kInferFailed, "elements of " + text_of(type(value)) + " do not fit " + text_of(made.type));
  made.constant = plan_.values[value].constant;
  made.half = plan_.values[value].half;
  made.root = plan_.values[value].root;
  return add(std::move(made));
}

void Planner::set_output(size_t i, int value) {
  if (!ok()) return;
  if (i >= node_->outputs.size()) {
    fail(kOperatorAttribute, "it has " + std::to_string(node_->outputs.size()) + " outputs, expected more");
    return;
  }
  plan_.of_tensor[node_->outputs[i]] = value;
}

int Planner::folded(myc_kernel_fn kernel, const char* op, const std::vector<int>& inputs, const std::vector<uint8_t>& attributes, Type out) {
  std::string key = op;
  for (int i : inputs) {
    const uint8_t* data = i < 0 ? nullptr : constant(i);
    key.append(reinterpret_cast<const char*>(&data), sizeof(data)).append(i < 0 ? "" : text_of(type(i)));
  }
  key.append(attributes.begin(), attributes.end()).append(text_of(out));
  if (const auto found = packs_->find(key); found != packs_->end()) return add(found->second);
  Pack pack{std::move(out), Memory()};
  pack.memory = Memory(static_cast<size_t>(bytes_of(pack.type)));
  if (!pack.memory.data()) return fail(kMemory, "no memory for " + std::to_string(bytes_of(pack.type)) + " bytes");
  Packs on_the_way;  // of inputs that are stored as float16: needed here only
  std::swap(*packs_, on_the_way);
  const std::vector<int> wide = widened(inputs);
  std::swap(*packs_, on_the_way);
  if (!ok()) return 0;
  std::vector<myc_tensor> described_inputs(inputs.size());
  std::vector<const myc_tensor*> in(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] < 0) continue;
    described_inputs[i] = described(type(wide[i]), const_cast<uint8_t*>(constant(wide[i])));
    in[i] = &described_inputs[i];
  }
  myc_tensor result = described(pack.type, pack.memory.data());
  myc_tensor* results[] = {&result};
  myc_context* context = myc_cpu_context();
  const myc_call call{in.data(), results, attributes.data(), context, static_cast<int32_t>(in.size()), 1};
  if (const int32_t code = kernel(&call); code != MYC_OK)
    return fail(kOperatorFailed, std::string("kernel ") + op + (code == MYC_E_ARGUMENT ? std::string(": ") + context->error : " does not take this case"));
  const int made = add(pack);
  (*packs_)[key] = std::move(pack);
  return made;
}

int Planner::widened(int value) {
  if (value < 0 || !plan_.values[value].half) return value;
  Value stored;
  stored.type = {MYC_F16, type(value).shape};
  stored.constant = constant(value);
  const Type wide = type(value);
  return emit("cast", {add(std::move(stored))}, myc_cast_attrs{MYC_F32}, wide);
}

std::vector<int> Planner::widened(std::vector<int> values) {
  for (int& value : values) value = widened(value);
  return values;
}

int Planner::once(const std::string& key, const std::function<int()>& make) {
  if (const auto found = packs_->find(key); found != packs_->end()) return add(found->second);
  Packs on_the_way;
  Packs* kept = packs_;
  packs_ = &on_the_way;
  const int made = make();
  packs_ = kept;
  if (!ok()) return made;
  for (auto& [part, pack] : on_the_way) {
    if (pack.memory.data() != constant(made)) continue;
    (*packs_)[key] = std::move(pack);
    return made;
  }
  return fail(kError, "what is to be kept is not computed from constants");
}

int Planner::made_constant(Type type, const void* data) {
  if (!fits(type)) return 0;
  const size_t bytes = static_cast<size_t>(bytes_of(type));
  const std::string key = "made " + text_of(type) + std::string(static_cast<const char*>(data), bytes);
  if (const auto found = packs_->find(key); found != packs_->end()) return add(found->second);
  Pack pack{std::move(type), Memory(bytes)};
  if (!pack.memory.data()) return fail(kMemory, "no memory for " + std::to_string(bytes) + " bytes");
  if (bytes) std::memcpy(pack.memory.data(), data, bytes);
  const int made = add(pack);
  (*packs_)[key] = std::move(pack);
  return made;
}

int Planner::scalar(int32_t dtype, double value) {
  const int wide = made_constant({MYC_F64, {}}, &value);
  return dtype == MYC_F64 ? wide : emit("cast", {wide}, myc_cast_attrs{dtype}, Type{dtype, {}});
}

myc_kernel_fn Planner::kernel_of(const char* op, const std::vector<int>& inputs) {
  std::vector<int32_t> dtypes;
  for (int i : inputs) dtypes.push_back(i < 0 ? -1 : type(i).dtype);
  const myc_kernel_fn kernel = kernels().find(op, dtypes);
  if (!kernel) {
    std::string all;
    for (int i : inputs) all += (all.empty() ? "" : ", ") + (i < 0 ? std::string("none") : text_of(type(i)));
    fail(kNotSupported, std::string("no kernel ") + op + " for " + all);
  }
  return kernel;
}

int Planner::emit(const char* op, const std::vector<int>& inputs, std::vector<uint8_t> attributes, Type out) {
  if (!ok()) return 0;
  const myc_kernel_fn kernel = kernel_of(op, inputs);
  if (!kernel || !fits(out)) return 0;
  bool constants = true;
  for (int i : inputs) constants = constants && (i < 0 || constant(i));
  if (constants) return folded(kernel, op, inputs, attributes, std::move(out));
  Value value;
  value.type = std::move(out);
  const int made = add(std::move(value));
  plan_.steps.push_back({kernel, std::move(attributes), widened(inputs), {made}, node_index_});
  return made;
}

std::vector<int> Planner::emit_all(const char* op, const std::vector<int>& inputs, std::vector<uint8_t> attributes, std::vector<Type> outs) {
  std::vector<int> made(outs.size());
  const myc_kernel_fn kernel = ok() ? kernel_of(op, inputs) : nullptr;
  for (const Type& out : outs)
    if (!kernel || !fits(out)) return made;
  for (size_t i = 0; i < outs.size(); ++i) {
    Value value;
    value.type = std::move(outs[i]);
    made[i] = add(std::move(value));
  }
  plan_.steps.push_back({kernel, std::move(attributes), widened(inputs), made, node_index_});
  return made;
}

Status Planner::run(const std::vector<std::vector<int64_t>>& shapes) {
  plan_.of_tensor.assign(file_.tensors.size(), -1);
  add(Value());  // what `fail` returns: operators may go on with it
  const std::vector<bool> halves = stored_as_half(file_);
  for (size_t i = 0; i < file_.tensors.size(); ++i) {
    const FileTensor& tensor = file_.tensors[i];
    if (!tensor.data) continue;
    Value value;
    value.type = {abi_dtype(tensor.dtype), tensor.shape};
    value.constant = tensor.data;
    if (reinterpret_cast<uintptr_t>(tensor.data) % item_bytes(value.type.dtype)) {  // kernels read whole elements
      Pack& copy = (*packs_)["aligned " + std::to_string(i)];
      if (!copy.memory.data()) {
        copy = {value.type, Memory(tensor.bytes)};
        if (!copy.memory.data()) return {kMemory, "no memory for the constants"};
        std::memcpy(copy.memory.data(), tensor.data, tensor.bytes);
      }
      value.constant = copy.memory.data();
    }
    if (halves[i]) value.type.dtype = MYC_F32, value.half = true;
    plan_.of_tensor[i] = add(std::move(value));
  }
  for (size_t i = 0; i < file_.inputs.size(); ++i) {
    const FileTensor& tensor = file_.tensors[file_.inputs[i]];
    Value value;
    value.type = {abi_dtype(tensor.dtype), shapes[i]};
    if (value.type.dtype < 0) return {kNotSupported, "input '" + std::string(tensor.name) + "' has dtype number " + std::to_string(tensor.dtype)};
    for (int64_t n : shapes[i])
      if (n < 0) return {kInferLater, "input '" + std::string(tensor.name) + "' has an open size: resize the model first (negative dimension)"};
    if (element_count(shapes[i]) < 0) return {kInferFailed, "input '" + std::string(tensor.name) + "' is too large"};
    value.outside = true;
    plan_.inputs.push_back(add(std::move(value)));
    plan_.of_tensor[file_.inputs[i]] = plan_.inputs.back();
  }

  std::string unknown;  // all of them are told, not the first alone
  for (const FileNode& node : file_.nodes) {
    if (find_operator(node.kind)) continue;
    unknown += (unknown.empty() ? "" : ", ") + std::string(name_of_operator(node.kind)) + " (node '" + std::string(node.name) + "')";
  }
  if (!unknown.empty()) return {kOperatorNotFound, "operators without a kernel: " + unknown};

  for (size_t i = 0; i < file_.nodes.size() && ok(); ++i) {
    node_ = &file_.nodes[i];
    node_index_ = static_cast<int>(i);
    find_operator(node_->kind)(*this);
    if (ok() && !file_.reader->ok()) fail(kGraphInvalid, file_.reader->fault());
    for (uint32_t o : node_->outputs)
      if (ok() && plan_.of_tensor[o] < 0) fail(kNotSupported, "its output '" + std::string(file_.tensors[o].name) + "' is not computed");
  }
  node_ = nullptr;
  if (!ok()) return status_;
  copy_outputs();
  place();
  return {};
}

// Outputs have memory of their own: one that is an input, a constant, a view or another output is copied to it.
void Planner::copy_outputs() {
  for (uint32_t tensor : file_.outputs) {
    const int value = widened(plan_.of_tensor[tensor]);
    Value& made = plan_.values[value];
    if (!made.constant && !made.outside && made.root == value) {
      made.outside = true;
      plan_.outputs.push_back(value);
      continue;
    }
    Value copy;
    copy.type = made.type;
    copy.outside = true;
    const int target = add(std::move(copy));
    plan_.steps.push_back({nullptr, {}, {value}, {target}, -1});
    plan_.outputs.push_back(target);
  }
}

// Places in the arena: large values first, each at the lowest place that is free while it lives.
void Planner::place() {
  struct Life {
    int value, from, to;
    int64_t bytes;
  };
  std::vector<Life> lives;
  std::vector<int> of_value(plan_.values.size(), -1);
  for (int s = 0; s < static_cast<int>(plan_.steps.size()); ++s) {
    const Step& step = plan_.steps[s];
    for (int i : step.inputs) {
      if (i < 0) continue;
      const int root = plan_.values[i].root;
      if (of_value[root] >= 0) lives[of_value[root]].to = s;
    }
    for (int o : step.outputs) {
      if (plan_.values[o].outside) continue;
      of_value[o] = static_cast<int>(lives.size());
      lives.push_back({o, s, s, bytes_of(plan_.values[o].type)});
    }
  }
  std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) { return a.bytes > b.bytes; });
  std::vector<const Life*> placed;
  for (const Life& life : lives) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const Life* other : placed)
      if (other->from <= life.to && life.from <= other->to) taken.emplace_back(plan_.values[other->value].place, other->bytes);
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [begin, bytes] : taken) {
      if (at + life.bytes <= begin) break;
      at = std::max<int64_t>(at, (begin + bytes + kAlignment - 1) / kAlignment * kAlignment);
    }
    plan_.values[life.value].place = at;
    plan_.arena_bytes = std::max(plan_.arena_bytes, at + life.bytes);
    placed.push_back(&life);
  }
}

}  // namespace mycelia::lite
