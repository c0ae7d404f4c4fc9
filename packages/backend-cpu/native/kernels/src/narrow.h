// Kernels for float16 and bfloat16, made from those for float32: inputs of 16 bits are widened, the kernel computes
// in float32, and each result of 16 bits is rounded once.  Those that memory bounds convert in registers, by themselves
// (half.h): all their tensors, or the large ones, while what is small beside them is widened before and rounded behind.
// Of the others, those that treat the parts along the first axis alike work through blocks that stay in the cache, as do
// elementwise ones on mixed types; the rest gets whole tensors.
// Bytes: 16-bit tensors once for the former; for the rest three times more, which their arithmetic outweighs.
#ifndef MYCELIA_NARROW_H_
#define MYCELIA_NARROW_H_

#include "elementwise/half.h"
#include "mycelia/kernels.h"

namespace mycelia::MYC_ISA {

// Flags of a kernel beside those of abi.h (core's backends/registry.py): it takes f16 or bf16 where its dtypes say f32;
// what it reads of 16 bits it reads as it is.
constexpr uint32_t kNarrow = 2, kReadsShort = 4;

// How a kernel gets 16-bit floats: as whole tensors or blocks in float32; as they are, if all its floats have one type
// (elementwise or not) or its large tensors have; as they are, each of any type.
enum class Way { kWhole, kElements, kParts, kAlike, kAlikeOthers, kStreams, kAny };

constexpr int64_t kNarrowBlock = 4096;       // elements of a block: 16 KB an operand
constexpr int64_t kImageBlock = 1 << 14;     // of images or planes, so that what kernels prepare serves many of them
constexpr int64_t kMostImage = 1 << 16;      // elements of an image that is not cut into planes
constexpr int64_t kNarrowScratch = 1 << 16;  // bytes that a kernel may take for itself in a block

inline void widen_any(int32_t dtype, const void* x, float* y, int64_t n) {
  if (dtype == MYC_F16) widen(static_cast<const Half*>(x), y, n);
  else widen(static_cast<const Brain*>(x), y, n);
}

inline void narrow_any(int32_t dtype, const float* x, void* y, int64_t n) {
  if (dtype == MYC_F16) narrow(x, static_cast<Half*>(y), n);
  else narrow(x, static_cast<Brain*>(y), n);
}

// ---- which kernels work in blocks ----

constexpr bool same_text(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

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
    {"argmax", 1, 0}, {"argmin", 1, 0}, {"max_with_index", 1, 1}, {"min_with_index", 1, 1}, {"place_along", 1, 1}};

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

// Each part along the first axis of the results and of the inputs that have a bit in `in`; of pools a part may as well be
// a plane.
struct Parts {
  const char* op;
  uint32_t in;
  bool pool;
};
constexpr Parts kByParts[] = {
    {"max_pool", 1, true}, {"max_pool_grad", 3, true}, {"max_pool_index", 1, true},
    {"adaptive_max_pool", 1, true}, {"adaptive_max_pool_index", 1, true},
    {"avg_pool", 1, true}, {"avg_pool_grad", 1, true}, {"adaptive_avg_pool", 1, true}, {"adaptive_avg_pool_grad", 1, true},
    {"pool_take", 3, true}, {"pool_scatter", 3, true}, {"bias_add", 1, false}};

template <int n>
constexpr bool is_one_of(const char* const (&names)[n], const char* op) {
  for (const char* name : names)
    if (same_text(name, op)) return true;
  return false;
}

constexpr Way way_of(const char* op) {
  if (is_one_of(kElementwise, op)) return Way::kElements;
  if (entry_of(kByParts, op).op) return Way::kParts;
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

// ---- whole tensors ----

// Operands whose bits are set in `kept` reach the kernel as they are.
inline int32_t run_whole(const myc_call* call, myc_kernel_fn fn, Streams kept = {nullptr, 0, 0}) {
  Scratch scratch(call);
  const int n_in = call->n_in, n_out = call->n_out;
  myc_tensor* types = scratch.take<myc_tensor>(n_in + n_out);
  const myc_tensor** ins = scratch.take<const myc_tensor*>(n_in);
  myc_tensor** outs = scratch.take<myc_tensor*>(n_out);
  if (!types || !ins || !outs) return MYC_E_MEMORY;
  for (int i = 0; i < n_in + n_out; ++i) {
    const myc_tensor* t = i < n_in ? call->in[i] : call->out[i - n_in];
    if (i < n_in) ins[i] = t ? &types[i] : nullptr;
    else outs[i - n_in] = &types[i];
    if (!t) continue;
    types[i] = *t;
    const bool stays = i < n_in ? kept.in >> i & 1 : kept.out >> (i - n_in) & 1;
    if (stays || !is_16_bits(t->dtype)) continue;
    float* wide = scratch.take<float>(t->size);
    if (!wide) return MYC_E_MEMORY;
    types[i].dtype = MYC_F32;
    types[i].data = wide;
    if (i >= n_in) continue;
    parallel_for(call, t->size, kMinParallelWork / 6, [&](int64_t begin, int64_t end) {
      widen_any(t->dtype, static_cast<const char*>(t->data) + 2 * begin, wide + begin, end - begin);
    });
  }
  const myc_call inner = {ins, outs, call->attrs, call->ctx, n_in, n_out};
  const int32_t rc = fn(&inner);
  if (rc != MYC_OK) return rc;
  for (int i = 0; i < n_out; ++i) {
    const myc_tensor& y = output(call, i);
    if (!is_16_bits(y.dtype) || kept.out >> i & 1) continue;
    const float* wide = static_cast<const float*>(outs[i]->data);
    parallel_for(call, y.size, kMinParallelWork / 6, [&](int64_t begin, int64_t end) {
      narrow_any(y.dtype, wide + begin, static_cast<char*>(y.data) + 2 * begin, end - begin);
    });
  }
  return MYC_OK;
}

// ---- blocks ----

constexpr int kMaxOperands = 16;

// One operand of a kernel that runs block by block.
struct Operand {
  const myc_tensor* t;
  bool cut;         // a block holds a part of it; else all of it
  bool result;
  int64_t part;     // elements of one part
  int32_t lead;     // its axes that the parts lie along
  int32_t ones;     // axes of 1 that a block has in the place of the others of these, behind the first
  float* wide;      // of all of it, if it is not cut and has 16 bits
  int64_t at;       // of its buffer in a worker's memory, in floats; -1: needs none
};

// The context of one block: one thread, and scratch memory from the worker's share.
struct BlockContext {
  myc_context base;
  char* memory;

  static void* take(myc_context* ctx, int64_t bytes) {
    BlockContext* self = static_cast<BlockContext*>(ctx->host);
    bytes = round_up(max(bytes, int64_t{1}), int64_t{64});
    if (ctx->scratch_used + bytes > kNarrowScratch) return nullptr;
    ctx->scratch_used += bytes;
    return self->memory + ctx->scratch_used - bytes;
  }

  explicit BlockContext(char* share) : memory(share) {
    base.host = this;
    base.threads = 1;
    base.scratch_used = 0;
    base.parallel_for = nullptr;  // with one thread kernels loop by themselves
    base.scratch = take;
    base.error[0] = 0;
  }
};

// Runs `fn` on blocks of `each` of the `parts`.  MYC_E_MEMORY: the kernel wants more scratch memory than blocks have.
inline int32_t run_blocks(const myc_call* call, myc_kernel_fn fn, Operand* operands, int64_t parts, int64_t each, int64_t part_work) {
  Scratch scratch(call);
  const int n_in = call->n_in, n = n_in + call->n_out;
  int64_t floats = 0;
  for (int i = 0; i < n; ++i) {
    Operand& o = operands[i];
    o.at = -1;
    o.wide = nullptr;
    if (!o.t || !is_16_bits(o.t->dtype)) continue;
    if (o.cut) {
      o.at = floats;
      floats += round_up(each * o.part, int64_t{16});
    } else {
      o.wide = scratch.take<float>(o.t->size);
      if (!o.wide) return MYC_E_MEMORY;
      widen_any(o.t->dtype, o.t->data, o.wide, o.t->size);
    }
  }
  const int64_t share = floats * 4 + kNarrowScratch;
  const int32_t workers = max_workers(call);
  char* memory = scratch.take<char>(workers * share);
  int32_t* failed = scratch.take<int32_t>(workers);
  if (!memory || !failed) return MYC_E_MEMORY;
  for (int32_t w = 0; w < workers; ++w) failed[w] = MYC_OK;
  const int64_t blocks = ceil_div(parts, each);
  parallel_for_worker(call, blocks, kMinParallelWork / (each * part_work + 1) + 1, [&](int64_t begin, int64_t end, int32_t worker) {
    float* buffers = reinterpret_cast<float*>(memory + worker * share);
    BlockContext context(memory + worker * share + floats * 4);
    myc_tensor types[kMaxOperands];
    const myc_tensor* ins[kMaxOperands];
    myc_tensor* outs[kMaxOperands];
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * each, count = min(each, parts - first);
      for (int i = 0; i < n; ++i) {
        const Operand& o = operands[i];
        if (i < n_in) ins[i] = o.t ? &types[i] : nullptr;
        else outs[i - n_in] = &types[i];
        if (!o.t) continue;
        myc_tensor& t = types[i] = *o.t;
        if (o.wide) t.data = o.wide, t.dtype = MYC_F32;
        if (!o.cut) continue;
        t.rank = o.t->rank - o.lead + 1 + o.ones;
        t.shape[0] = count;
        for (int d = 1; d <= o.ones; ++d) t.shape[d] = 1;
        for (int d = o.ones + 1; d < t.rank; ++d) t.shape[d] = o.t->shape[d + o.lead - 1 - o.ones];
        t.size = count * o.part;
        char* place = static_cast<char*>(o.t->data) + first * o.part * item_size(o.t->dtype);
        t.data = place;
        if (o.at < 0) continue;
        t.dtype = MYC_F32;
        t.data = buffers + o.at;
        if (!o.result) widen_any(o.t->dtype, place, buffers + o.at, t.size);
      }
      const myc_call inner = {ins, outs, call->attrs, &context.base, call->n_in, call->n_out};
      const int32_t rc = fn(&inner);
      if (rc != MYC_OK) {
        failed[worker] = rc;
        if (rc == MYC_E_ARGUMENT) memcpy(call->ctx->error, context.base.error, sizeof(context.base.error));
        return;
      }
      for (int i = n_in; i < n; ++i) {
        const Operand& o = operands[i];
        if (o.at < 0) continue;
        narrow_any(o.t->dtype, buffers + o.at, static_cast<char*>(o.t->data) + first * o.part * 2, types[i].size);
      }
    }
  });
  for (int32_t w = 0; w < workers; ++w)
    if (failed[w] != MYC_OK) return failed[w];
  return MYC_OK;
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

MYC_INLINE int32_t run_parts(const myc_call* call, myc_kernel_fn fn, Parts p) {
  const myc_tensor& x = input(call);
  if (call->n_in + call->n_out > kMaxOperands || x.rank < 2 || x.size == 0) return run_whole(call, fn);
  const int64_t image = max(x.size, output(call).size) / x.shape[0];
  const bool planes = p.pool && (x.shape[0] == 1 || image > kMostImage) && !channels_last(p.op, call);
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
    o.cut = o.result || p.in >> i & 1;
    o.lead = lead, o.ones = lead - 1;
    if (o.cut && (o.t->rank < lead || extent(*o.t, 0, lead) != parts)) return run_whole(call, fn);
    o.part = o.cut ? o.t->size / parts : 0;
    most = max(most, o.part);
  }
  const int64_t each = max((p.pool ? kImageBlock : kNarrowBlock) / most, int64_t{1});
  const int32_t rc = run_blocks(call, fn, operands, parts, each, 6 * most);
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
  return alike ? run_whole(call, fn, streams) : run_whole(call, fn);
}

// `Name` has the op's name as the constant `text`.
template <class Name, myc_kernel_fn fn>
int32_t narrowed(const myc_call* call) {
  constexpr Way way = way_of(Name::text);
  if constexpr (way == Way::kAny) return fn(call);
  else if constexpr (way == Way::kAlike) return is_alike(call) ? fn(call) : run_elements(call, fn);
  else if constexpr (way == Way::kAlikeOthers) return is_alike(call) ? fn(call) : run_whole(call, fn);
  else if constexpr (way == Way::kStreams) return run_streams(call, fn, entry_of(kStreams, Name::text));
  else if constexpr (way == Way::kElements) return run_elements(call, fn);
  else if constexpr (way == Way::kParts) return run_parts(call, fn, entry_of(kByParts, Name::text));
  else return run_whole(call, fn);
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_NARROW_H_
