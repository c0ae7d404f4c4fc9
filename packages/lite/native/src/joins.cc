// Steps that one kernel does together, found when all steps of a stage are known:
// * a residual, then an activation behind a convolution or a product on packed weights, in its epilogue: exact;
// * a swap of heads and positions in front of or behind a product of heads, which then reads or writes them side by side;
// * a depthwise convolution and the 1x1 convolutions around it, row by row, where what is between would leave the cache.
// What joins has no other reader, so nothing is computed twice; steps whose results nobody reads go before.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "kernels.h"
#include "mycelia/cpu.h"
#include "mycelia/op_attrs.h"
#include "plan.h"

namespace mycelia::lite {

namespace {

constexpr int kResidual = 3;  // position among the inputs of conv_last and linear
constexpr int64_t kLeastBytes = 512 << 10;  // of what is between: less stays in the second-level cache anyway
constexpr int64_t kMostBytes = 384 << 10;  // of the rows at work: more would not stay there
constexpr int64_t kLeastWidth = 24;  // pixels: shorter rows fill the tiles of a product badly

template <class Attributes>
Attributes read(const Step& step) {
  Attributes a;
  std::memcpy(&a, step.attributes.data(), sizeof(a));
  return a;
}

template <class Attributes>
std::vector<uint8_t> written(const Attributes& a) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&a);
  return {bytes, bytes + sizeof(a)};
}

bool is(const Step& step, std::string_view op) { return op == step.op; }
bool is_low_bit(const Step& step) { return std::string_view(step.op).substr(0, 8) == "low_bit_"; }
bool is_host(const Step& step) { return is(step, "conv_last") || is(step, "linear") || is_low_bit(step); }

// The position of a host's residual among its inputs, and of its activation in its attributes.
int residual_of(const Step& host) { return is_low_bit(host) ? 5 : kResidual; }
size_t place_of_activation(const Step& host) { return host.attributes.size() - sizeof(int64_t); }  // the last of each
static_assert(offsetof(myc_conv_last_attrs, activation) + 8 == sizeof(myc_conv_last_attrs));
static_assert(offsetof(myc_linear_attrs, activation) + 8 == sizeof(myc_linear_attrs));
static_assert(offsetof(myc_low_bit_linear_attrs, activation) + 8 == sizeof(myc_low_bit_linear_attrs));
static_assert(offsetof(myc_low_bit_conv_last_attrs, activation) + 8 == sizeof(myc_low_bit_conv_last_attrs));

int64_t activation_of(const Step& host) {
  int64_t activation;
  std::memcpy(&activation, host.attributes.data() + place_of_activation(host), sizeof(activation));
  return activation;
}

void set_activation(Step* host, int64_t activation) {
  constexpr int64_t kRelu6 = 2;  // what products do themselves
  if (activation > kRelu6) ask_for_part("activations");
  std::memcpy(host->attributes.data() + place_of_activation(*host), &activation, sizeof(activation));
}

// The activation that a step is, as hosts number them; -1 if it is another op.
int64_t activation_step(const Step& step) {
  static constexpr std::string_view names[] = {"", "relu", "relu6", "hardswish", "silu", "sigmoid"};
  for (int64_t i = 1; i < 6; ++i)
    if (names[i] == step.op) return i;
  return is(step, "gelu") ? 6 + (read<myc_gelu_attrs>(step).approximate ? 1 : 0) : -1;
}

bool is_all(const myc_ints& numbers, int64_t wanted) {
  for (int32_t i = 0; i < numbers.n; ++i)
    if (numbers.v[i] != wanted) return false;
  return true;
}

bool is_depthwise(const Step& step) {
  if (!is(step, "conv_last") || step.inputs[kResidual] >= 0) return false;
  const auto a = read<myc_conv_last_attrs>(step);
  return a.algorithm == MYC_CONV_DEPTHWISE && is_all(a.dilation, 1);
}

// Whether it multiplies pixel by pixel.
bool is_point(const Step& step) {
  if (!is(step, "conv_last")) return false;
  const auto a = read<myc_conv_last_attrs>(step);
  return a.algorithm == MYC_CONV_DIRECT && a.group == 1 && is_all(a.kernel, 1) && is_all(a.stride, 1) && is_all(a.pad, 0);
}

// Whether it swaps the two axes in the middle of four, as around an attention.
bool swaps_heads(const Step& step) {
  if (!is(step, "transpose")) return false;
  const myc_ints dims = read<myc_transpose_attrs>(step).dims;
  return dims.n == 4 && dims.v[0] == 0 && dims.v[1] == 2 && dims.v[2] == 1 && dims.v[3] == 3;
}

}  // namespace

void Planner::join_steps() {
  std::vector<Step>& steps = plan_.steps;
  const std::vector<bool> kept = needed_later();
  std::vector<int> readers = readers_of_memory(), maker(plan_.values.size(), -1);
  std::vector<bool> gone(steps.size(), false);

  // The step that makes `value` for one reader alone; -1 if there is none in this stage.
  const auto own_maker = [&](int value) {
    if (value < 0 || maker[value] < 0) return -1;
    const Value& v = plan_.values[value];
    return v.root != value || v.outside || kept[value] || readers[value] != 1 ? -1 : maker[value];
  };
  // Lets `host` take the place of step `s`, where all that it reads exists.
  const auto moved = [&](size_t s, int host, Step made) {
    gone[host] = true;
    made.outputs = steps[s].outputs;
    made.node = steps[s].node;
    steps[s] = std::move(made);
  };
  const auto join_epilogue = [&](size_t s) {
    if (const int64_t activation = activation_step(steps[s]); activation >= 0) {
      const int host = own_maker(steps[s].inputs[0]);
      if (host < 0 || !is_host(steps[host]) || activation_of(steps[host])) return;
      Step made = steps[host];
      set_activation(&made, activation);
      return moved(s, host, std::move(made));
    }
    if (!is(steps[s], "add")) return;
    for (int side = 0; side < 2; ++side) {
      const int value = steps[s].inputs[side], residual = steps[s].inputs[1 - side], host = own_maker(value);
      if (host < 0 || !is_host(steps[host]) || activation_of(steps[host]) || steps[host].inputs[residual_of(steps[host])] >= 0) continue;
      const auto shape = [&](int v) -> const std::vector<int64_t>& { return plan_.values[v].type.shape; };
      if (shape(residual) != shape(value) || shape(steps[s].outputs[0]) != shape(value)) continue;
      Step made = steps[host];
      made.inputs[residual_of(made)] = residual;
      return moved(s, host, std::move(made));
    }
  };
  const auto as_heads = [&](Step step) {  // a product of heads in the form that may have them side by side; no kernel if it is none
    if (is(step, "head_matmul")) return step;
    const auto shape = [&](int side) -> const std::vector<int64_t>& { return plan_.values[step.inputs[side]].type.shape; };
    const bool fits = is(step, "batch_matmul") && plan_.values[step.inputs[0]].type.dtype == MYC_F32 && shape(0).size() == 4 && shape(1).size() == 4 &&
                      std::equal(shape(0).begin(), shape(0).begin() + 2, shape(1).begin());
    const auto a = fits ? read<myc_batch_matmul_attrs>(step) : myc_batch_matmul_attrs{1, 0};
    step.kernel = a.transpose_a ? nullptr : kernels().find("head_matmul", {MYC_F32});  // asked for where it is used: a cropped library has no others
    step.op = "head_matmul";
    step.attributes = written(myc_head_matmul_attrs{a.transpose_b, 0, 0, 0});
    return step;
  };
  const auto join_heads = [&](size_t s) {
    if (swaps_heads(steps[s])) {
      const int host = own_maker(steps[s].inputs[0]);
      Step made = host < 0 ? Step() : as_heads(steps[host]);
      if (!made.kernel || read<myc_head_matmul_attrs>(made).beside) return;
      auto a = read<myc_head_matmul_attrs>(made);
      a.beside = 1;
      made.attributes = written(a);
      return moved(s, host, std::move(made));
    }
    for (int side = 0; side < 2; ++side) {
      if (!is(steps[s], "batch_matmul") && !is(steps[s], "head_matmul")) return;
      const int swap = own_maker(steps[s].inputs[side]);
      if (swap < 0 || !swaps_heads(steps[swap])) continue;
      Step made = as_heads(steps[s]);
      if (!made.kernel) return;
      auto a = read<myc_head_matmul_attrs>(made);
      (side ? a.y_beside : a.x_beside) = 1;
      made.attributes = written(a);
      made.inputs[side] = steps[swap].inputs[0];
      gone[swap] = true;
      steps[s] = std::move(made);
    }
  };
  const auto join_separable = [&](size_t s) {
    const int middle = is_point(steps[s]) ? own_maker(steps[s].inputs[0]) : -1;
    if (middle < 0 || !is_depthwise(steps[middle])) return;
    int before = own_maker(steps[middle].inputs[0]);
    if (before >= 0 && (!is_point(steps[before]) || steps[before].inputs[kResidual] >= 0)) before = -1;
    const std::vector<int64_t>&source = plan_.values[steps[middle].inputs[0]].type.shape, &result = plan_.values[steps[middle].outputs[0]].type.shape;
    const auto deep = read<myc_conv_last_attrs>(steps[middle]), project = read<myc_conv_last_attrs>(steps[s]);
    const int64_t rows = 2 * result[2] * result[3] + (before < 0 ? 0 : (deep.kernel.v[0] + deep.stride.v[0]) * source[2] * source[3]);
    const int64_t between = element_count(result) + (before < 0 ? 0 : element_count(source));
    if (std::min(source[2], result[2]) < kLeastWidth || 4 * between < kLeastBytes || 4 * rows > kMostBytes) return;
    Step made = steps[middle];
    made.kernel = kernels().find("conv_last_separable", {MYC_F32});
    made.op = "conv_last_separable";
    const std::vector<int> expand = before < 0 ? std::vector<int>{steps[middle].inputs[0], -1, -1} : steps[before].inputs;
    made.inputs = {expand[0], steps[middle].inputs[1], steps[s].inputs[1], steps[middle].inputs[2], steps[s].inputs[2], steps[s].inputs[kResidual],
                   expand[1], expand[2]};
    made.attributes = written(myc_conv_last_separable_attrs{deep.channels, project.channels, deep.kernel, deep.stride, deep.pad,
                                                            before < 0 ? 0 : activation_of(steps[before]), deep.activation, project.activation});
    if (before >= 0) gone[before] = true;
    moved(s, middle, std::move(made));
  };

  const auto drop_unread = [&] {
    for (size_t s = steps.size(); s-- > 0;) {
      const auto unread = [&](int o) { return !plan_.values[o].outside && !kept[o] && !readers[o]; };
      if (!std::all_of(steps[s].outputs.begin(), steps[s].outputs.end(), unread)) continue;
      gone[s] = true;
      for (int i : steps[s].inputs)
        if (i >= 0) --readers[plan_.values[i].root];
    }
  };
  const auto pass = [&](const auto& join) {
    for (size_t s = 0; s < steps.size(); ++s) {
      if (gone[s]) continue;
      join(s);
      for (int o : steps[s].outputs) maker[o] = static_cast<int>(s);
    }
  };
  drop_unread();
  pass(join_epilogue);
  pass(join_heads);
  pass(join_separable);  // when it is known what follows a convolution
  size_t left = 0;
  for (size_t s = 0; s < steps.size(); ++s)
    if (!gone[s]) std::swap(steps[left++], steps[s]);
  steps.resize(left);
}

}  // namespace mycelia::lite
