#include "plan.h"

#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "lanes.h"
#include "mycelia/cpu.h"
#include "mycelia/op_attrs.h"
#include "own/own.h"
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

}  // namespace

std::string text_of(const Type& type) {
  std::string text = dtype_name(type.dtype);
  text += "[";
  for (size_t i = 0; i < type.shape.size(); ++i) text += message({i ? ", " : "", type.shape[i]});
  return message({text, "]"});
}

// ---- planning ----------------------------------------------------------------------------------------------------

int Planner::fail(int code, const std::string& why) {
  if (ok()) {
    const std::string kind = node_ ? name_of_operator(node_->kind) : "";
    status_ = {code, node_ ? message({"node '", node_->name, "' (", kind, "): ", why}) : why};
  }
  return 0;
}

int Planner::add(Value value) {
  const int index = static_cast<int>(plan_.values.size());
  if (value.root < 0) value.root = index;
  plan_.values.push_back(std::move(value));
  return index;
}

int Planner::add(const Pack& pack, bool lasting) {
  Value value;
  value.type = pack.type;
  value.constant = pack.memory.data();
  value.lasting = lasting;
  return add(std::move(value));
}

int Planner::optional_input(size_t i) { return i < node_->inputs.size() ? value_of(scope_, node_->inputs[i]) : -1; }

int Planner::input(size_t i) {
  const int value = optional_input(i);
  return value >= 0 ? value : fail(kOperatorAttribute, message({"input ", i, " is missing"}));
}

std::vector<int64_t> Planner::integers(int value, const char* what) {
  std::vector<int64_t> found;
  const Type& t = type(value);
  const int64_t count = element_count(t.shape);
  if (count > kMostIntegers) fail(kOperatorAttribute, message({what, " has ", count, " numbers"}));
  if (!constant(value) && ok()) {
    waits_ = true;
    plan_.missing.push_back(value);
  }
  for (int64_t i = 0; i < count && ok(); ++i) {
    if (t.dtype == MYC_I32) {
      int32_t n;
      std::memcpy(&n, constant(value) + i * 4, 4);
      found.push_back(n);
    } else if (t.dtype == MYC_I64) {
      int64_t n;
      std::memcpy(&n, constant(value) + i * 8, 8);
      found.push_back(n);
    } else if (t.dtype == MYC_BOOL) {
      found.push_back(constant(value)[i] != 0);
    } else {
      fail(kOperatorAttribute, message({what, " must be int32 or int64, but is ", text_of(t)}));
      return {};
    }
  }
  return found;
}

bool Planner::fits(const Type& type) {
  if (type.rank() > MYC_MAX_RANK) {
    fail(kNotSupported, message({"the result ", text_of(type), " has more than ", MYC_MAX_RANK, " dimensions"}));
  } else if (element_count(type.shape) < 0) {
    fail(kInferFailed, message({"the result ", text_of(type), " is too large"}));
  }
  return ok();
}

int Planner::view(int value, std::vector<int64_t> shape) {
  Type as{type(value).dtype, std::move(shape)};
  if (!fits(as)) return 0;
  if (element_count(as.shape) != element_count(type(value).shape))
    return fail(kInferFailed, message({"elements of ", text_of(type(value)), " do not fit ", text_of(as)}));
  return shared(value, std::move(as));
}

int Planner::reinterpreted(int value, Type as) {
  if (!fits(as)) return 0;
  const auto bytes = [](const Type& t) { return element_count(t.shape) * item_bytes(t.dtype); };
  if (bytes(as) != bytes(type(value)) || is_compact(value))
    return fail(kInferFailed, message({"the bytes of ", text_of(type(value)), " do not fit ", text_of(as)}));
  return shared(value, std::move(as));
}

int Planner::shared(int value, Type as) {
  Value made;
  made.type = std::move(as);
  made.constant = plan_.values[value].constant;
  made.stored = plan_.values[value].stored;
  made.lasting = plan_.values[value].lasting;
  made.root = plan_.values[value].root;
  made.offset = plan_.values[value].offset;
  if (made.constant) return add(std::move(made));
  // Kept like a step: a number that is asked of a view is known by it in the next stage.
  Emitted step{"", {value}, {}, {made.type}, {}};
  if (const std::vector<int>* before = emitted_before(step)) return (*before)[0];
  step.outputs = {add(std::move(made))};
  emitted_.push_back(std::move(step));
  return emitted_.back().outputs[0];
}

int Planner::turned(int value, const std::vector<int>& order) {
  if (!ok()) return 0;
  const Type t = type(value);
  Type out{t.dtype, {}};
  myc_transpose_attrs attributes{};
  int last = -1;
  bool moves = false;
  for (int axis : order) {
    attributes.dims.v[attributes.dims.n++] = axis;
    out.shape.push_back(t.shape[axis]);
    if (t.shape[axis] == 1) continue;
    moves = moves || axis < last;
    last = axis;
  }
  return moves ? emit("transpose", {value}, attributes, std::move(out)) : view(value, std::move(out.shape));
}

int Planner::first_of(int value) const {
  const auto found = firsts_.find(value);
  return found == firsts_.end() ? -1 : found->second;
}

int Planner::channels_first(int value) {
  const int found = first_of(value);
  return found >= 0 ? found : turned(value, {0, 3, 1, 2});
}

int Planner::channels_last(int first) {
  const int last = turned(first, {0, 2, 3, 1});
  if (ok()) firsts_[last] = first;
  return last;
}

void Planner::set_output(size_t i, int value) {
  if (!ok()) return;
  if (i >= node_->outputs.size()) {
    fail(kOperatorAttribute, message({"it has ", node_->outputs.size(), " outputs, expected more"}));
    return;
  }
  plan_.scopes[scope_].values[node_->outputs[i]] = value;
}

int Planner::folded(myc_kernel_fn kernel, const char* op, const std::vector<int>& inputs, const std::vector<uint8_t>& attributes, Type out) {
  std::string key = op;
  bool lasting = true;
  const bool packs_weights = std::exchange(packs_next_, false);
  for (int i : inputs) {
    const uint8_t* data = i < 0 ? nullptr : constant(i);
    lasting = lasting && (i < 0 || plan_.values[i].lasting);
    key.append(reinterpret_cast<const char*>(&data), sizeof(data)).append(i < 0 ? "" : text_of(type(i)));
  }
  key.append(attributes.begin(), attributes.end()).append(text_of(out));
  if (const auto found = packs(lasting).find(key); found != packs(lasting).end()) return add(found->second, lasting);
  Pack pack{std::move(out), Memory()};
  const size_t bytes = static_cast<size_t>(bytes_of(pack.type));
  pack.memory = packs_weights && lasting ? pool_->take(bytes) : Memory(bytes);
  if (!pack.memory.data()) return fail(kMemory, message({"no memory for ", bytes, " bytes"}));
  Packs on_the_way;  // of inputs that are stored in fewer bytes: needed here only
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
  const int made = add(pack, lasting);
  packs(lasting)[key] = std::move(pack);
  return made;
}

int Planner::widened(int value) {
  if (value < 0 || !plan_.values[value].stored) return value;
  const FileTensor& file = *plan_.values[value].stored;
  const Type narrow{abi_dtype(file.dtype), file.shape}, wide{MYC_F32, file.shape};
  const int64_t bits = file.scales ? file.scales->bits : 0;
  Value stored;
  stored.type = bits ? Type{MYC_U8, {static_cast<int64_t>(file.bytes)}} : narrow;
  stored.constant = constant(value);
  stored.lasting = plan_.values[value].lasting;
  int made = add(std::move(stored));
  if (bits) made = emit("unpack_bits", {made}, UnpackBitsAttributes{bits}, narrow);
  made = emit("cast", {made}, myc_cast_attrs{MYC_F32}, wide);
  if (file.scales) made = scaled(made, *file.scales, wide);
  const std::vector<int64_t> shape = type(value).shape;
  return shape == file.shape ? made : view(made, shape);
}

std::vector<int> Planner::widened(std::vector<int> values) {
  for (int& value : values) value = widened(value);
  return values;
}

int Planner::once(const std::string& what, int from, const std::function<int()>& make) {
  if (!plan_.values[from].lasting) return make();
  const std::string key = message({what, " ", reinterpret_cast<uintptr_t>(constant(from))});
  if (const auto found = packs_->find(key); found != packs_->end()) return add(found->second, true);
  const size_t stored = is_compact(from) ? static_cast<size_t>(plan_.values[from].stored->bytes) : static_cast<size_t>(bytes_of(type(from)));
  Packs on_the_way;
  Packs* kept = packs_;
  packs_ = &on_the_way;
  const int made = make();
  packs_ = kept;
  if (!ok()) return made;
  for (auto& [part, pack] : on_the_way) {
    if (pack.memory.data() != constant(made)) continue;
    (*packs_)[key] = std::move(pack);
    file_.release(constant(from), stored);
    return made;
  }
  return fail(kError, "what is to be kept is not computed from constants");
}

int Planner::made_constant(Type type, const void* data, bool lasting) {
  if (!fits(type)) return 0;
  const size_t bytes = static_cast<size_t>(bytes_of(type));
  const std::string key = message({"made ", text_of(type), std::string(static_cast<const char*>(data), bytes)});
  if (const auto found = packs(lasting).find(key); found != packs(lasting).end()) return add(found->second, lasting);
  Pack pack{std::move(type), Memory(bytes)};
  if (!pack.memory.data()) return fail(kMemory, message({"no memory for ", bytes, " bytes"}));
  if (bytes) std::memcpy(pack.memory.data(), data, bytes);
  const int made = add(pack, lasting);
  packs(lasting)[key] = std::move(pack);
  return made;
}

int Planner::scalar(int32_t dtype, double value) {
  const int wide = made_constant({MYC_F64, {}}, &value, true);
  return dtype == MYC_F64 ? wide : emit("cast", {wide}, myc_cast_attrs{dtype}, Type{dtype, {}});
}

myc_kernel_fn Planner::kernel_of(const char* op, const std::vector<int>& inputs, const std::vector<uint8_t>& attributes, int32_t* narrow,
                                 int32_t* wide) {
  std::vector<int32_t> dtypes;
  for (int i : inputs) dtypes.push_back(i < 0 ? -1 : type(i).dtype);
  *wide = -1;
  if (const myc_kernel* const kernel = kernels().entry(op, dtypes)) {
    for (int i : inputs)
      if (i >= 0 && *kernel->dtypes == '*') ask_for_copies(op, attributes, type(i).dtype, type(i).shape);
    return kernel->fn;
  }
  for (const int32_t dtype : dtypes) {
    if (dtype < 0) continue;
    *narrow = dtype, *wide = wider(op, dtype);
    break;
  }
  if (*wide >= 0) {
    for (int32_t& dtype : dtypes)
      if (dtype == *narrow) dtype = *wide;
    if (kernels().find(op, dtypes) || wider(op, *wide) >= 0) return nullptr;
  }
  std::string all;
  for (int i : inputs) all += (all.empty() ? "" : ", ") + (i < 0 ? std::string("none") : text_of(type(i)));
  fail(kNotSupported, message({"no kernel ", op, " for ", all, not_here()}));
  return nullptr;
}

int Planner::emit_bytes(const char* op, const int* inputs, size_t count, const void* attributes, size_t size, const Type& out) {
  const auto* const bytes = static_cast<const uint8_t*>(attributes);
  return emit(op, std::vector<int>(inputs, inputs + count), std::vector<uint8_t>(bytes, bytes + size), out);
}

int Planner::emit(const char* op, const std::vector<int>& inputs, std::vector<uint8_t> attributes, Type out) {
  if (!ok()) return 0;
  int32_t narrow, wide;
  const myc_kernel_fn kernel = kernel_of(op, inputs, attributes, &narrow, &wide);
  if (!ok() || !fits(out)) return 0;
  if (!kernel) return emit_wide(op, inputs, attributes, {out}, narrow, wide)[0];
  Emitted step{op, inputs, std::move(attributes), {out}, {}};
  if (const std::vector<int>* before = emitted_before(step)) return (*before)[0];
  bool constants = true;
  for (int i : inputs) constants = constants && (i < 0 || constant(i));
  if (constants) return folded(kernel, op, inputs, step.attributes, std::move(out));
  Value value;
  value.type = std::move(out);
  step.outputs = {add(std::move(value))};
  plan_.steps.push_back({kernel, step.attributes, widened(inputs), step.outputs, node_index_, op});
  emitted_.push_back(std::move(step));
  return emitted_.back().outputs[0];
}

std::vector<int> Planner::emit_all(const char* op, const std::vector<int>& inputs, std::vector<uint8_t> attributes, std::vector<Type> outs) {
  std::vector<int> made(outs.size());
  if (!ok()) return made;
  int32_t narrow, wide;
  const myc_kernel_fn kernel = kernel_of(op, inputs, attributes, &narrow, &wide);
  for (const Type& out : outs)
    if (!ok() || !fits(out)) return made;
  if (!kernel) return emit_wide(op, inputs, attributes, outs, narrow, wide);
  Emitted step{op, inputs, std::move(attributes), outs, {}};
  if (const std::vector<int>* before = emitted_before(step)) return *before;
  for (size_t i = 0; i < outs.size(); ++i) {
    Value value;
    value.type = std::move(outs[i]);
    made[i] = add(std::move(value));
  }
  plan_.steps.push_back({kernel, step.attributes, widened(inputs), made, node_index_, op});
  step.outputs = made;
  emitted_.push_back(std::move(step));
  return made;
}

// The results of a step that ran in the stage before, when its node waited for a number; null if there is none.
const std::vector<int>* Planner::emitted_before(const Emitted& wanted) {
  const auto same_type = [](const Type& a, const Type& b) { return a.dtype == b.dtype && a.shape == b.shape; };
  const auto same_value = [&](int a, int b) {
    if (a == b) return true;
    return a >= 0 && b >= 0 && constant(a) && constant(b) && same_type(type(a), type(b)) && plan_.values[a].stored == plan_.values[b].stored &&
           (constant(a) == constant(b) || (!plan_.values[a].stored && !std::memcmp(constant(a), constant(b), static_cast<size_t>(bytes_of(type(a))))));
  };
  const auto found = std::find_if(replayed_.begin(), replayed_.end(), [&](const Emitted& step) {
    return step.op == wanted.op && step.attributes == wanted.attributes &&
           std::equal(step.inputs.begin(), step.inputs.end(), wanted.inputs.begin(), wanted.inputs.end(), same_value) &&
           std::equal(step.types.begin(), step.types.end(), wanted.types.begin(), wanted.types.end(), same_type);
  });
  if (found == replayed_.end()) return nullptr;  // with the number that came, the operator goes another way
  emitted_.push_back(std::move(*found));
  replayed_.erase(found);
  return &emitted_.back().outputs;
}

// Places in the arena: large values first, each at the lowest place that is free while it lives.
void Planner::place() {
  const std::vector<bool> kept = needed_later();
  struct Life {
    int value, from, to;
    int64_t bytes;
    std::vector<int> makers;  // steps, several where each makes a part
  };
  std::vector<Life> lives;
  std::vector<int> of_value(plan_.values.size(), -1);
  for (int s = 0; s < static_cast<int>(plan_.steps.size()); ++s) {
    const Step& step = plan_.steps[s];
    for (int i : step.inputs) {
      if (i < 0) continue;
      const int root = plan_.values[i].root;
      if (of_value[root] >= 0) lives[of_value[root]].to = std::max(lives[of_value[root]].to, s);
    }
    for (int o : step.outputs) {
      const int root = plan_.values[o].root;
      if (plan_.values[root].outside) continue;
      if (of_value[root] < 0) {
        of_value[root] = static_cast<int>(lives.size());
        lives.push_back({root, s, kept[root] ? static_cast<int>(plan_.steps.size()) : s, bytes_of(plan_.values[root].type), {}});
      }
      Life& life = lives[of_value[root]];
      life.to = std::max(life.to, s);
      life.makers.push_back(s);
    }
  }
  for (const NodeRun& node : plan_.nodes) {  // who watches reads what a node has, even if no step of it does
    for (const std::vector<int>* values : {&node.inputs, &node.outputs})
      for (int v : *values)
        if (const int life = v < 0 ? -1 : of_value[plan_.values[v].root]; life >= 0) lives[life].to = std::max(lives[life].to, node.last - 1);
  }
  // Whether nobody reads a any more when b is made: in the order of the steps, or in whatever order they may run.
  std::vector<std::vector<bool>> earlier;
  std::vector<std::vector<int>> users;
  if (plan_.parallel) {
    earlier = plan_.parallel->ancestors(plan_.parallel->order_of(plan_));
    users.resize(plan_.values.size());
    for (int s = 0; s < static_cast<int>(plan_.steps.size()); ++s) {
      for (int i : plan_.steps[s].inputs)
        if (i >= 0) users[plan_.values[i].root].push_back(s);
      for (int o : plan_.steps[s].outputs) users[plan_.values[o].root].push_back(s);
    }
  }
  const auto ended = [&](const Life& a, const Life& b) {
    if (!plan_.parallel || a.to >= b.from) return a.to < b.from;
    const std::vector<int>& all = users[a.value];
    return std::all_of(b.makers.begin(), b.makers.end(), [&](int maker) {
      return std::all_of(all.begin(), all.end(), [&](int s) { return earlier[maker][s]; });
    });
  };
  std::vector<std::pair<int64_t, int64_t>> order;  // large ones first, equal ones as they are made
  for (size_t i = 0; i < lives.size(); ++i) order.emplace_back(-lives[i].bytes, i);
  std::sort(order.begin(), order.end());
  std::vector<const Life*> placed;
  for (const auto& [bytes, index] : order) {
    const Life& life = lives[static_cast<size_t>(index)];
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const Life* other : placed)
      if (!ended(*other, life) && !ended(life, *other)) taken.emplace_back(plan_.values[other->value].place, other->bytes);
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [begin, size] : taken) {
      if (at + life.bytes <= begin) break;
      at = std::max<int64_t>(at, (begin + size + kAlignment - 1) / kAlignment * kAlignment);
    }
    plan_.values[life.value].place = at;
    plan_.arena_bytes = std::max(plan_.arena_bytes, at + life.bytes);
    placed.push_back(&life);
  }
}

}  // namespace mycelia::lite
