#include "chain.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>

#include "kernels.h"
#include "mycelia/cpu.h"
#include "mycelia/op_attrs.h"

namespace mycelia::lite {

namespace {

constexpr int64_t kBlock = 4096;  // elements: three blocks of float32 stay in the first-level cache
constexpr int64_t kAlignment = 64;
constexpr int64_t kLeastBlocks = 4;  // from so many on it pays to write out what is the same for all

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void count_elements(myc_tensor* t) {
  t->size = 1;
  for (int d = 0; d < t->rank; ++d) t->size *= t->shape[d];
}

}  // namespace

Chain::Chain(const std::vector<Value>& values, const std::vector<const Step*>& members) {
  const Type& result = values[members.back()->outputs[0]].type;
  shape_ = result.shape;
  cut(result, std::any_of(members.begin(), members.end(), [](const Step* step) { return std::string_view(step->op) == "softmax"; }));
  const auto is_made = [&](int value) {
    return std::any_of(members.begin(), members.end(), [&](const Step* step) { return step->outputs[0] == value; });
  };
  for (const Step* step : members)
    for (int i : step->inputs)
      if (i >= 0 && !is_made(i) && std::find(inputs_.begin(), inputs_.end(), i) == inputs_.end()) inputs_.push_back(i);
  std::vector<int> part(values.size(), -1);
  for (int i : inputs_) part[i] = static_cast<int>(parts_.size()), parts_.push_back(part_of(values[i].type));
  for (const Step* step : members) {
    Member member{step->kernel, step->attributes, {}, static_cast<int>(parts_.size())};
    for (int i : step->inputs) member.operands.push_back(i < 0 ? -1 : part[i]);
    part[step->outputs[0]] = member.made;
    parts_.push_back(part_of(values[step->outputs[0]].type));
    members_.push_back(std::move(member));
  }
  place_parts();
}

// The axis whose pieces, with all behind it, are blocks. Rows that a member needs as a whole are not cut.
void Chain::cut(const Type& result, bool needs_rows) {
  const int last = result.rank() - (needs_rows ? 2 : 1);
  int64_t inner = 1;  // elements behind the axis
  for (int d = 1; d < result.rank(); ++d) inner *= shape_[d];
  while (axis_ < last && inner > kBlock) inner /= shape_[++axis_];
  piece_ = std::max<int64_t>(1, kBlock / inner);
  pieces_ = (shape_[axis_] + piece_ - 1) / piece_;
  piece_ = (shape_[axis_] + pieces_ - 1) / pieces_;
  pieces_ = (shape_[axis_] + piece_ - 1) / piece_;
  blocks_ = pieces_;
  for (int d = 0; d < axis_; ++d) blocks_ *= shape_[d];
}

Chain::Part Chain::part_of(const Type& type) const {
  Part part;
  part.block.dtype = type.dtype;
  part.block.rank = type.rank();
  part.strides.assign(axis_ + 1, 0);
  const int missing = static_cast<int>(shape_.size()) - type.rank();  // axes that the result has in front
  int64_t stride = item_bytes(type.dtype);
  bool is_same = true;
  for (int d = type.rank() - 1; d >= 0; --d) {
    const int at = d + missing;
    const int64_t n = type.shape[d];
    part.block.shape[d] = at < axis_ ? 1 : at > axis_ || n == 1 ? n : piece_;
    if (at <= axis_ && n != 1) {
      part.strides[at] = stride * (at == axis_ ? piece_ : 1);
      part.is_along = part.is_along || at == axis_;
      is_same = false;
    }
    stride *= n;
  }
  count_elements(&part.block);
  part.is_spread = is_same && part.block.size > 1 && blocks_ >= kLeastBlocks;
  return part;
}

// Where results lie in a worker's memory: a place is free again when the last who reads it is done.
void Chain::place_parts() {
  spread_ = kernels().find("broadcast_to", {MYC_F32});
  int64_t inner = 1, slot = 0;
  for (size_t d = axis_ + 1; d < shape_.size(); ++d) inner *= shape_[d];
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (i >= inputs_.size()) {
      slot = std::max(slot, aligned(part.block.size * item_bytes(part.block.dtype)));
    } else if ((part.is_spread = part.is_spread && spread_ && part.block.size < piece_ * inner)) {
      part.block.rank = static_cast<int32_t>(shape_.size());
      for (size_t d = 0; d < shape_.size(); ++d) part.block.shape[d] = static_cast<int>(d) < axis_ ? 1 : static_cast<int>(d) == axis_ ? piece_ : shape_[d];
      count_elements(&part.block);
      part.is_along = true;  // what lies there is as long as a piece
      part.place = spread_bytes_;
      spread_bytes_ += aligned(part.block.size * item_bytes(part.block.dtype));
    }
  }
  std::vector<int> last(parts_.size(), -1);
  for (size_t m = 0; m < members_.size(); ++m)
    for (int i : members_[m].operands)
      if (i >= 0) last[i] = static_cast<int>(m);
  std::vector<int64_t> free;
  for (size_t m = 0; m + 1 < members_.size(); ++m) {
    if (free.empty()) free.push_back(own_bytes_), own_bytes_ += slot;
    parts_[members_[m].made].place = free.back();
    free.pop_back();
    for (size_t i = inputs_.size(); i < parts_.size(); ++i)
      if (last[i] == static_cast<int>(m)) free.push_back(parts_[i].place);
  }
}

// One thread's way through some blocks.
struct Chain::Run {
  const Chain& chain;
  const myc_call* call;
  uint8_t *own, *spread;
  std::vector<myc_tensor> tensors;

  Run(const Chain& chain, const myc_call* call, uint8_t* own, uint8_t* spread) : chain(chain), call(call), own(own), spread(spread) {
    for (const Part& part : chain.parts_) tensors.push_back(part.block);
    for (size_t i = 0; i < tensors.size(); ++i)
      if (chain.parts_[i].place >= 0) tensors[i].data = (chain.parts_[i].is_spread ? spread : own) + chain.parts_[i].place;
  }

  void go_to(int64_t block) {
    const int axis = chain.axis_;
    int64_t index[MYC_MAX_RANK], rest = block / chain.pieces_;
    index[axis] = block % chain.pieces_;
    for (int d = axis - 1; d >= 0; --d) index[d] = rest % chain.shape_[d], rest /= chain.shape_[d];
    const int64_t left = chain.shape_[axis] - index[axis] * chain.piece_, length = std::min(chain.piece_, left);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Part& part = chain.parts_[i];
      myc_tensor& t = tensors[i];
      const int at = axis - (static_cast<int>(chain.shape_.size()) - t.rank);
      if (part.is_along && t.shape[at] != length) t.shape[at] = length, count_elements(&t);
      if (part.place >= 0) continue;
      t.data = i < chain.inputs_.size() ? call->in[i]->data : call->out[0]->data;
      for (int d = 0; d <= axis; ++d) t.data = static_cast<uint8_t*>(t.data) + index[d] * part.strides[d];
    }
  }

  int32_t members(myc_context* context) {
    const myc_tensor* in[MYC_MAX_INTS];
    for (const Member& member : chain.members_) {
      for (size_t i = 0; i < member.operands.size(); ++i) in[i] = member.operands[i] < 0 ? nullptr : &tensors[member.operands[i]];
      myc_tensor* out[] = {&tensors[member.made]};
      const myc_call inner{in, out, member.attributes.data(), context, static_cast<int32_t>(member.operands.size()), 1};
      if (const int32_t code = member.kernel(&inner); code != MYC_OK) return code;
    }
    return MYC_OK;
  }
};

int32_t Chain::run(const myc_call* call) const {
  myc_context* const context = call->ctx;
  struct Scratch {
    myc_context* context;
    int64_t used = context->scratch_used;
    ~Scratch() { context->scratch_used = used; }
  } scratch{context};
  const int64_t bytes = spread_bytes_ + own_bytes_ * std::max(context->threads, 1);
  auto* const memory = static_cast<uint8_t*>(context->scratch(context, std::max<int64_t>(bytes, 1)));
  if (!memory) return MYC_E_MEMORY;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!parts_[i].is_spread) continue;
    myc_tensor block = parts_[i].block;
    block.data = memory + parts_[i].place;
    myc_broadcast_to_attrs attributes{};
    for (int d = 0; d < block.rank; ++d) attributes.shape.v[attributes.shape.n++] = block.shape[d];
    myc_tensor* out[] = {&block};
    const myc_call spreading{call->in + i, out, &attributes, context, 1, 1};
    if (const int32_t code = spread_(&spreading); code != MYC_OK) return code;
  }
  struct Work {
    const Chain& chain;
    const myc_call* call;
    uint8_t* memory;
    std::atomic<int32_t> failed{MYC_OK};
  } work{*this, call, memory, {}};
  context->parallel_for(
      context, blocks_, kLeastBlocks,
      [](void* argument, int64_t begin, int64_t end, int32_t worker) {
        Work& work = *static_cast<Work*>(argument);
        myc_context* const own = myc_cpu_context();
        Run run(work.chain, work.call, work.memory + work.chain.spread_bytes_ + worker * work.chain.own_bytes_, work.memory);
        for (int64_t block = begin; block < end && work.failed == MYC_OK; ++block) {
          run.go_to(block);
          const int32_t code = run.members(own);
          int32_t none = MYC_OK;
          if (code != MYC_OK && work.failed.compare_exchange_strong(none, code) && own != work.call->ctx)
            std::memcpy(work.call->ctx->error, own->error, sizeof(own->error));
        }
      },
      &work);
  return work.failed;
}

// ---- finding them ---------------------------------------------------------------------------------------------------

namespace {

constexpr int64_t kLeastElements = 8192;  // less stays in the cache anyway
constexpr int64_t kLongestRow = 8192;
constexpr size_t kMostInputs = 12, kMostMembers = 24;

// Whether each element of the result comes of those at its place in the inputs, which are broadcast as in NumPy.
bool is_elementwise(std::string_view op) {
  static constexpr std::string_view kOps[] = {
      "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
      "bitwise_xor", "cast", "ceil", "clip", "cos", "cosh", "div", "elu", "equal", "erf", "exp", "expm1", "floor", "floor_div", "floor_mod", "gelu",
      "greater", "greater_equal", "hardsigmoid", "hardswish", "invert", "isfinite", "isinf", "isnan", "leaky_relu", "less", "less_equal", "log",
      "log1p", "logical_and", "logical_not", "logical_or", "maximum", "minimum", "mul", "neg", "not_equal", "pow", "reciprocal", "relu", "relu6",
      "round", "rsqrt", "sigmoid", "sign", "silu", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh", "trunc", "truncate_div", "truncate_mod",
      "where"};
  return std::binary_search(std::begin(kOps), std::end(kOps), op);
}

int32_t run_chain(const myc_call* call) {
  const Chain* chain;
  std::memcpy(&chain, call->attrs, sizeof(chain));
  return chain->run(call);
}

}  // namespace

void Planner::join_chains() {
  std::vector<Step>& steps = plan_.steps;
  const std::vector<Value>& values = plan_.values;
  const std::vector<bool> kept = needed_later();
  std::vector<std::vector<int>> readers(values.size());  // steps, of a value or a view of it
  std::vector<int> maker(values.size(), -1);
  for (size_t s = 0; s < steps.size(); ++s) {
    for (int i : steps[s].inputs)
      if (i >= 0) readers[values[i].root].push_back(static_cast<int>(s));
    for (int o : steps[s].outputs) maker[o] = static_cast<int>(s);
  }
  const auto may_join = [&](const Step& step) {
    if (!step.kernel || step.outputs.size() != 1) return false;
    const Type& type = values[step.outputs[0]].type;
    if (element_count(type.shape) < kLeastElements) return false;
    if (std::string_view(step.op) != "softmax") return is_elementwise(step.op);
    myc_softmax_attrs attributes;
    std::memcpy(&attributes, step.attributes.data(), sizeof(attributes));
    return type.rank() > 1 && attributes.axis == type.rank() - 1 && type.shape.back() <= kLongestRow;
  };
  std::vector<bool> gone(steps.size(), false);
  std::vector<int> chain_of(steps.size(), -1);  // the last member of the chain that a step is in
  const auto whole_inputs = [&](const Step& step) {
    const int64_t size = element_count(values[step.outputs[0]].type.shape);
    return std::count_if(step.inputs.begin(), step.inputs.end(), [&](int i) { return i >= 0 && element_count(values[i].type.shape) == size; });
  };
  for (int s = static_cast<int>(steps.size()) - 1; s >= 0; --s) {
    if (gone[s] || !may_join(steps[s])) continue;
    const std::vector<int64_t>& shape = values[steps[s].outputs[0]].type.shape;
    std::vector<int> members{s};
    chain_of[s] = s;
    // Whether the step's result is for the chain alone, and no more is kept alive than that was.
    const auto belongs = [&](int p) {
      if (p < 0 || gone[p] || chain_of[p] == s || !may_join(steps[p])) return false;
      const int made = steps[p].outputs[0];
      if (values[made].outside || kept[made] || values[made].type.shape != shape) return false;
      for (int reader : readers[made])
        if (chain_of[reader] != s || std::count(steps[reader].inputs.begin(), steps[reader].inputs.end(), made) == 0) return false;
      if (whole_inputs(steps[p]) <= 1) return true;
      for (int between = p + 1; between < s; ++between)
        if (!gone[between] && chain_of[between] != s) return false;
      return true;
    };
    for (bool grew = true; grew && members.size() < kMostMembers;) {
      grew = false;
      for (size_t m = 0; m < members.size() && members.size() < kMostMembers; ++m) {
        for (int i : steps[members[m]].inputs) {
          const int p = i < 0 || values[i].root != i ? -1 : maker[i];
          if (!belongs(p)) continue;
          members.push_back(p);
          chain_of[p] = s;
          grew = true;
        }
      }
    }
    if (members.size() < 2) continue;
    std::sort(members.begin(), members.end());
    std::vector<const Step*> parts;
    for (int m : members) parts.push_back(&steps[m]);
    auto chain = std::make_shared<Chain>(values, parts);
    if (chain->inputs().size() > kMostInputs) continue;
    ask_for_part("chains");
    for (int m : members) gone[m] = m != s;
    const Chain* const address = chain.get();
    Step made;
    made.kernel = run_chain;
    made.op = "chain";
    made.attributes.resize(sizeof(address));
    std::memcpy(made.attributes.data(), &address, sizeof(address));
    made.inputs = chain->inputs();
    made.outputs = steps[s].outputs;
    made.node = steps[s].node;
    plan_.kept.push_back(std::move(chain));
    steps[s] = std::move(made);
  }
  size_t left = 0;
  for (size_t s = 0; s < steps.size(); ++s)
    if (!gone[s]) std::swap(steps[left++], steps[s]);
  steps.resize(left);
}

}  // namespace mycelia::lite
