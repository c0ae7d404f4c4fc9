// Kernels for float16 and bfloat16, made from those for float32: inputs of 16 bits are widened, the kernel computes
// in float32, and each result of 16 bits is rounded once.  Those that memory bounds convert in registers, by themselves
// (half.h): all their tensors, or the large ones, while what is small beside them is widened before and rounded behind.
// Of the others, those that treat the parts along the first axis alike work through blocks that stay in the cache, as do
// elementwise ones on mixed types and products that memory bounds; the rest gets whole tensors.
// Bytes: 16-bit tensors once for the former; for the rest three times more, which their arithmetic outweighs.
#ifndef MYCELIA_NARROW_H_
#define MYCELIA_NARROW_H_

#include "narrow/blocks.h"
#include "narrow/products.h"

namespace mycelia::MYC_ISA {

// Flags of a kernel beside those of abi.h (core's backends/registry.py): it takes f16 or bf16 where its dtypes say f32;
// what it reads of 16 bits it reads as it is.
constexpr uint32_t kNarrow = 2, kReadsShort = 4;

// How a kernel gets 16-bit floats: as whole tensors or blocks in float32; as they are, if all its floats have one type
// (elementwise or not) or its large tensors have; as they are, each of any type.
enum class Way { kWhole, kElements, kParts, kProduct, kAlike, kAlikeOthers, kStreams, kAny };

constexpr int64_t kNarrowBlock = 4096;       // elements of a block: 16 KB an operand
constexpr int64_t kManyBlock = 1 << 14;      // where kernels prepare something for each call
constexpr int64_t kLeastImage = 1 << 14;     // of one that is worth a convolution of its own
constexpr int64_t kMostSums = 16;            // of gradients of weights, which are added
constexpr int64_t kFewChannels = 128;        // multiply-adds of an element that memory keeps up with

// ---- which kernels work in blocks ----

// Elementwise, with NumPy's broadcasting among all inputs.
constexpr const char* kElementwise[] = {"lgamma", "digamma"};

// Elementwise, by the loops of elementwise.h, which convert in registers.
constexpr const char* kAlike[] = {
    "relu", "relu_grad", "relu6", "hardtanh", "hardtanh_grad", "leaky_relu", "leaky_relu_grad", "elu", "elu_grad",
    "hardsigmoid", "hardswish", "hardswish_grad", "sigmoid", "sigmoid_grad", "silu", "silu_grad", "fast_gelu",
    "softplus", "softplus_grad", "logsigmoid", "mish", "gelu", "gelu_grad", "equal", "not_equal", "less", "less_equal",
    "greater", "greater_equal", "isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "logical_and",
    "logical_or", "logical_xor", "logical_not", "add", "sub", "mul", "maximum", "minimum", "pow", "neg", "abs",
    "square", "sign", "div", "hypot", "tanh_grad", "reciprocal", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log",
    "log2", "log10", "log1p", "tanh", "logaddexp", "logaddexp2", "xlogy", "xdivy", "copysign", "clip", "clip_grad",
    "nan_to_num", "floor", "ceil", "trunc", "round", "floor_div", "truncate_div", "floor_mod", "truncate_mod", "erf",
    "erfc", "erfinv", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "atan2",
    "assign_add", "assign_sub"};

// By loops of their own.
constexpr const char* kAlikeOthers[] = {"softmax", "log_softmax", "softmax_grad", "log_softmax_grad", "cumsum", "cumprod",
                                        "dropout", "sigmoid_cross_entropy_with_logits", "squared_error",
                                        "squared_error_grad"};

// By loops of their own over the large tensors: bit k of `in` and `out` stands for input or result k.
struct Streams {
  const char* op;
  uint32_t in, out;
};
constexpr Streams kStreams[] = {
    {"batch_norm_infer", 1, 1}, {"batch_norm_train", 1 << 2, 1 << 2}, {"batch_norm_grad", 3, 1},
    {"batch_norm_act_train", 1 << 2 | 1 << 5, 1 << 2}, {"batch_norm_act_grad", 3, 1},
    {"layer_norm", 1, 1}, {"layer_norm_grad", 3, 1}, {"rms_norm", 1, 1}, {"rms_norm_grad", 3, 1},
    {"group_norm", 1, 1}, {"group_norm_grad", 3, 1},
    {"sparse_softmax_cross_entropy_with_logits", 1, 2}, {"softmax_cross_entropy_with_logits", 3, 2},
    {"argmax", 1, 0}, {"argmin", 1, 0}, {"max_with_index", 1, 1}, {"min_with_index", 1, 1}, {"place_along", 1, 1},
    {"bias_add", 1, 1}};

// The line of a table that is for `op`; its name is null if there is none.
template <class Line, int n>
constexpr Line entry_of(const Line (&lines)[n], const char* op) {
  for (const Line& line : lines)
    if (same_text(line.op, op)) return line;
  return {};
}

// By the arrays of optim.cc, or of one input.
constexpr const char* kAny[] = {"sum", "sum_to", "mean", "prod", "reduce_max", "reduce_min", "l2_norm",
                                "apply_gradient_descent", "sgd", "apply_momentum", "adam", "adam_amsgrad",
                                "adam_weight_decay", "adamw", "apply_ada_max", "lamb", "apply_rms_prop",
                                "apply_centered_rms_prop", "apply_adagrad", "apply_adagrad_v2", "apply_adadelta",
                                "apply_add_sign", "apply_power_sign", "apply_proximal_gradient_descent",
                                "apply_proximal_adagrad", "apply_ftrl", "rprop"};

constexpr const char* kProducts[] = {"mat_mul", "dense"};  // batch_matmul is many of them

// Each part along the first axis of the results and of the inputs that have a bit in `in`.
enum class Part {
  kPlane,       // or of each plane, if the channels are the second axis
  kManyPlanes,  // the same, what the kernel prepares for a call serves many planes
  kImage,       // convolutions, where memory bounds them
  kImageSum     // the same, the result is a sum over the images
};
struct Parts {
  const char* op;
  uint32_t in;
  Part kind;
};
constexpr Parts kByParts[] = {
    {"max_pool", 1, Part::kPlane}, {"max_pool_grad", 3, Part::kPlane}, {"max_pool_index", 1, Part::kPlane},
    {"adaptive_max_pool", 1, Part::kPlane}, {"adaptive_max_pool_index", 1, Part::kPlane},
    {"avg_pool", 1, Part::kManyPlanes}, {"avg_pool_grad", 1, Part::kManyPlanes},
    {"adaptive_avg_pool", 1, Part::kManyPlanes}, {"adaptive_avg_pool_grad", 1, Part::kManyPlanes},
    {"pool_take", 3, Part::kPlane}, {"pool_scatter", 3, Part::kPlane},
    {"conv", 1, Part::kImage}, {"conv_input_grad", 1, Part::kImage},
    {"conv_weight_grad", 3, Part::kImageSum}};

template <int n>
constexpr bool is_one_of(const char* const (&names)[n], const char* op) {
  for (const char* name : names)
    if (same_text(name, op)) return true;
  return false;
}

constexpr Way way_of(const char* op) {
  if (is_one_of(kElementwise, op)) return Way::kElements;
  if (entry_of(kByParts, op).op) return Way::kParts;
  if (is_one_of(kProducts, op) || same_text(op, "batch_matmul")) return Way::kProduct;
  if (is_one_of(kAlike, op)) return Way::kAlike;
  if (is_one_of(kAlikeOthers, op)) return Way::kAlikeOthers;
  if (entry_of(kStreams, op).op) return Way::kStreams;
  return is_one_of(kAny, op) ? Way::kAny : Way::kWhole;
}

// Elementwise ops and those like them read 16 bits, too, but are better off as steps of a fused pass.
constexpr uint32_t narrow_flags(const char* op) {
  const Way way = way_of(op);
  return way == Way::kStreams || way == Way::kAny ? kNarrow | kReadsShort : kNarrow;
}

// The most leading axes of the result that each operand has in full or not at all; 0: there are none.
inline int common_axes(const myc_call* call) {
  const myc_tensor& y = output(call);
  int common = 0;
  for (int lead = 1; lead <= y.rank; ++lead) {
    for (int i = 0; i < call->n_in; ++i) {
      if (!call->in[i]) continue;
      const myc_tensor& t = input(call, i);
      bool all = true, none = true;
      for (int d = 0; d < lead; ++d) {
        const int axis = d - (y.rank - t.rank);
        const int64_t n = axis < 0 ? 1 : t.shape[axis];
        all &= n == y.shape[d] && axis >= 0;
        none &= n == 1;
      }
      if (!all && !none) return common;
    }
    common = lead;
  }
  return common;
}

inline int32_t run_elements(const myc_call* call, myc_kernel_fn fn) {
  const myc_tensor& y = output(call);
  if (call->n_in + call->n_out > kMaxOperands || y.size < 2 || y.rank == 0) return run_whole(call, fn);
  const int lead = common_axes(call);
  if (lead == 0) return run_whole(call, fn);
  Operand operands[kMaxOperands];
  const int64_t parts = extent(y, 0, lead), part = extent(y, lead, y.rank);
  for (int i = 0; i < call->n_in + call->n_out; ++i) {
    Operand& o = operands[i];
    o.result = i >= call->n_in;
    o.t = o.result ? call->out[i - call->n_in] : call->in[i];
    if (!o.t) continue;
    if (o.result && (o.t->rank != y.rank || o.t->size != y.size)) return run_whole(call, fn);
    const int own = lead - (y.rank - o.t->rank);  // of the leading axes
    o.lead = own, o.ones = 0;
    o.cut = own > 0 && o.t->rank >= own && extent(*o.t, 0, own) == parts && o.t->rank == y.rank;
    o.part = o.cut ? extent(*o.t, lead, o.t->rank) : 0;
  }
  return run_blocks(call, fn, operands, parts, max(kNarrowBlock / max(part, int64_t{1}), int64_t{1}), 6 * part);
}

MYC_INLINE bool channels_last(const char* op, const myc_call* call) {
  if (same_text(op, "max_pool")) return attrs<myc_max_pool_attrs>(call).data_format == 1;
  if (same_text(op, "max_pool_grad")) return attrs<myc_max_pool_grad_attrs>(call).data_format == 1;
  if (same_text(op, "avg_pool")) return attrs<myc_avg_pool_attrs>(call).data_format == 1;
  return same_text(op, "avg_pool_grad") && attrs<myc_avg_pool_grad_attrs>(call).data_format == 1;
}

// Whether a convolution does so little with each element that its images are better done one by one: depthwise, or 1 x 1
// with few channels.
MYC_INLINE bool is_light(const myc_call* call, bool of_weight) {
  const myc_tensor &x = input(call), &w = of_weight ? output(call) : input(call, 1);
  if (max(x.size, of_weight ? input(call, 1).size : output(call).size) < x.shape[0] * kLeastImage) return false;
  return w.shape[1] == 1 || (extent(w, 2, w.rank) == 1 && max(w.shape[0], w.shape[1]) <= kFewChannels);
}

MYC_INLINE int32_t run_parts(const myc_call* call, myc_kernel_fn fn, Parts p) {
  const myc_tensor& x = input(call);
  if (call->n_in + call->n_out > kMaxOperands || x.rank < 2 || x.size == 0) return run_whole(call, fn);
  const bool of_weight = p.kind == Part::kImageSum, image = p.kind == Part::kImage || of_weight;
  if (image && !is_light(call, of_weight)) return run_whole(call, fn);
  if (of_weight && !is_16_bits(output(call).dtype)) return run_whole(call, fn);
  const bool planes = !image && !channels_last(p.op, call);
  const int lead = planes ? 2 : 1;
  const int64_t parts = extent(x, 0, lead);
  if (parts < 2) return run_whole(call, fn);
  Operand operands[kMaxOperands];
  int64_t most = 1;
  for (int i = 0; i < call->n_in + call->n_out; ++i) {
    Operand& o = operands[i];
    o.result = i >= call->n_in;
    o.t = o.result ? call->out[i - call->n_in] : call->in[i];
    if (!o.t) continue;
    o.cut = o.result ? !of_weight : p.in >> i & 1;
    o.lead = lead, o.ones = lead - 1;
    if (o.cut && (o.t->rank < lead || extent(*o.t, 0, lead) != parts)) return run_whole(call, fn);
    o.part = o.cut ? o.t->size / parts : 0;
    most = max(most, o.part);
  }
  const int64_t fits = max((p.kind == Part::kPlane ? kNarrowBlock : kManyBlock) / most, int64_t{1});
  const int64_t each = of_weight ? max(fits, ceil_div(parts, kMostSums)) : fits;
  const int64_t own = image ? kProductScratch : kNarrowScratch;
  const int32_t rc = run_blocks(call, fn, operands, parts, each, 6 * most, own);
  return rc == MYC_E_MEMORY || rc == MYC_E_UNSUPPORTED ? run_whole(call, fn) : rc;
}

// Whether all inputs and results that are floats have one type of 16 bits.
inline bool is_alike(const myc_call* call) {
  const int32_t dtype = input(call).dtype;
  const auto differs = [=](const myc_tensor& t) { return t.dtype != dtype && (t.dtype == MYC_F32 || is_16_bits(t.dtype)); };
  for (int i = 0; i < call->n_in; ++i)
    if (call->in[i] && differs(input(call, i))) return false;
  for (int i = 0; i < call->n_out; ++i)
    if (differs(output(call, i))) return false;
  return is_16_bits(dtype);
}

// Large tensors as they are, if they have one type.
inline int32_t run_streams(const myc_call* call, myc_kernel_fn fn, Streams streams) {
  int32_t dtype = -1;
  bool alike = true;
  const auto look = [&](const myc_tensor& t) {
    if (dtype < 0) dtype = t.dtype;
    alike &= t.dtype == dtype;
  };
  for (int i = 0; i < call->n_in; ++i)
    if (streams.in >> i & 1 && call->in[i]) look(input(call, i));
  for (int i = 0; i < call->n_out; ++i)
    if (streams.out >> i & 1) look(output(call, i));
  return alike ? run_whole(call, fn, {streams.in, streams.out}) : run_whole(call, fn);
}

// `Name` has the op's name as the constant `text`.
template <class Name, myc_kernel_fn fn>
int32_t narrowed(const myc_call* call) {
  constexpr Way way = way_of(Name::text);
  if constexpr (way == Way::kAny) return fn(call);
  else if constexpr (way == Way::kAlike) return is_alike(call) ? fn(call) : run_elements(call, fn);
  else if constexpr (way == Way::kAlikeOthers) return is_alike(call) ? fn(call) : run_whole(call, fn);
  else if constexpr (way == Way::kStreams) return run_streams(call, fn, entry_of(kStreams, Name::text));
  else if constexpr (way == Way::kProduct) return run_product(call, fn, Name::text);
  else if constexpr (way == Way::kElements) return run_elements(call, fn);
  else if constexpr (way == Way::kParts) return run_parts(call, fn, entry_of(kByParts, Name::text));
  else return run_whole(call, fn);
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_NARROW_H_
