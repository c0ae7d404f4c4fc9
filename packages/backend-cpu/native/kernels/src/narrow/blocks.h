// How a kernel for float32 gets 16-bit floats: whole tensors that are widened before and rounded behind, or block by block,
// in memory that stays in the cache.  narrow/narrow.h says which kernel works in which way.
#ifndef MYCELIA_NARROW_BLOCKS_H_
#define MYCELIA_NARROW_BLOCKS_H_

#include "simd/half.h"
#include "mycelia/kernels.h"

namespace mycelia::MYC_ISA {

constexpr int64_t kNarrowScratch = 1 << 16;  // bytes that a kernel may take for itself in a block

// Names of ops are compared when the library is compiled.
constexpr bool same_text(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

inline void widen_any(int32_t dtype, const void* x, float* y, int64_t n) {
  if (dtype == MYC_F16) widen(static_cast<const Half*>(x), y, n);
  else widen(static_cast<const Brain*>(x), y, n);
}

inline void narrow_any(int32_t dtype, const float* x, void* y, int64_t n) {
  if (dtype == MYC_F16) narrow(x, static_cast<Half*>(y), n);
  else narrow(x, static_cast<Brain*>(y), n);
}

// ---- whole tensors ----

// Operands that reach the kernel as they are: bit k of `in` and `out` stands for input or result k.
struct Kept {
  uint32_t in, out;
};
inline int32_t run_whole(const myc_call* call, myc_kernel_fn fn, Kept kept = {0, 0}) {
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
  bool cut;         // a block holds a part of it; else all of it, or a result is the sum of all blocks'
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
  int64_t limit;

  static void* take(myc_context* ctx, int64_t bytes) {
    BlockContext* self = static_cast<BlockContext*>(ctx->host);
    bytes = round_up(max(bytes, int64_t{1}), int64_t{64});
    if (ctx->scratch_used + bytes > self->limit) return nullptr;
    ctx->scratch_used += bytes;
    return self->memory + ctx->scratch_used - bytes;
  }

  BlockContext(char* share, int64_t bytes) : memory(share), limit(bytes) {
    base.host = this;
    base.threads = 1;
    base.scratch_used = 0;
    base.parallel_for = nullptr;  // with one thread kernels loop by themselves
    base.scratch = take;
    base.error[0] = 0;
  }
};

// Runs `fn` on blocks of `each` of the `parts`.  MYC_E_MEMORY: the kernel wants more scratch memory than `own` bytes.
inline int32_t run_blocks(const myc_call* call, myc_kernel_fn fn, Operand* operands, int64_t parts, int64_t each,
                          int64_t part_work, int64_t own = kNarrowScratch) {
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
    } else if (o.result) {
      o.wide = scratch.take<float>(o.t->size * ceil_div(parts, each));
      if (!o.wide) return MYC_E_MEMORY;
    } else {
      o.wide = scratch.take<float>(o.t->size);
      if (!o.wide) return MYC_E_MEMORY;
      widen_any(o.t->dtype, o.t->data, o.wide, o.t->size);
    }
  }
  const int64_t share = floats * 4 + own;
  const int32_t workers = max_workers(call);
  char* memory = scratch.take<char>(workers * share);
  int32_t* failed = scratch.take<int32_t>(workers);
  if (!memory || !failed) return MYC_E_MEMORY;
  for (int32_t w = 0; w < workers; ++w) failed[w] = MYC_OK;
  const int64_t blocks = ceil_div(parts, each);
  const int64_t grain = kMinParallelWork / (each * part_work + 1) + 1;
  parallel_for_worker(call, blocks, grain, [&](int64_t begin, int64_t end, int32_t worker) {
    float* buffers = reinterpret_cast<float*>(memory + worker * share);
    BlockContext context(memory + worker * share + floats * 4, own);
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
        if (o.wide) t.data = o.wide + (o.result ? block * t.size : 0), t.dtype = MYC_F32;
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
  for (int i = n_in; i < n; ++i) {
    const Operand& o = operands[i];
    if (!o.wide) continue;
    const int64_t size = o.t->size;
    for (int64_t block = 1; block < blocks; ++block)
      map(o.wide, o.wide + block * size, o.wide, size, [](f32v a, f32v b) { return a + b; });
    narrow_any(o.t->dtype, o.wide, o.t->data, size);
  }
  return MYC_OK;
}

}  // namespace mycelia::MYC_ISA

#endif  // MYCELIA_NARROW_BLOCKS_H_
