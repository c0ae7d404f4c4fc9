// The Custom node multi_head_attention, which the offline optimiser makes of its parts.
#include "custom.h"

namespace mycelia::lite {

namespace {

// x [B, T, H D], or [T, B, H D] if `first`, as [B, H, T, D].
int heads_of(Planner& p, int x, int64_t heads, bool first) {
  const Type type = p.type(x);
  if (p.ok() && (type.rank() != 3 || type.dtype != MYC_F32 || type.shape[2] % heads))
    p.fail(kInferFailed, text_of(type) + " cannot be shared among " + std::to_string(heads) + " heads");
  if (!p.ok()) return 0;
  const int apart = p.view(x, {type.shape[0], type.shape[1], heads, type.shape[2] / heads});
  return p.turned(apart, first ? std::vector<int>{1, 2, 0, 3} : std::vector<int>{0, 2, 1, 3});
}

}  // namespace

CUSTOM(multi_head_attention) {  // query, key, value [B, T, H D] or, if `first`, [T, B, H D]; a mask that is added to the scores [B, H, T, S]
  const int64_t heads = custom_int(p, "heads", 1, kMostSize), first = custom_int(p, "first", 0, 1);
  const double scale = custom_real(p, "scale");
  const int mask = p.optional_input(3);
  int operands[3];
  for (int i = 0; i < 3 && p.ok(); ++i) operands[i] = heads_of(p, p.input(i), heads, first);
  if (!p.ok()) return;
  const Type q = p.type(operands[0]), k = p.type(operands[1]), v = p.type(operands[2]);
  if (k.shape[0] != q.shape[0] || v.shape[0] != q.shape[0] || k.shape[3] != q.shape[3] || v.shape[2] != k.shape[2]) {
    p.fail(kInferFailed, "the heads of " + text_of(q) + ", " + text_of(k) + " and " + text_of(v) + " do not fit");
    return;
  }
  const Type scores{q.dtype, {q.shape[0], q.shape[1], q.shape[2], k.shape[2]}};
  int s = p.emit("batch_matmul", {operands[0], operands[1]}, myc_mat_mul_attrs{0, 1}, scores);
  if (scale != 1) s = p.emit("mul", {s, p.scalar(q.dtype, scale)}, scores);
  if (mask >= 0) {
    if (broadcast(p, scores, p.type(mask)).shape != scores.shape) p.fail(kInferFailed, "the mask " + text_of(p.type(mask)) + " does not fit " + text_of(scores));
    s = p.emit("add", {s, mask}, scores);
  }
  s = p.emit("softmax", {s}, myc_softmax_attrs{3}, scores);
  const int y = p.emit("batch_matmul", {s, operands[2]}, myc_mat_mul_attrs{0, 0}, Type{q.dtype, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}});
  if (!p.ok()) return;
  const int together = p.turned(y, first ? std::vector<int>{2, 0, 1, 3} : std::vector<int>{0, 2, 1, 3});
  const std::vector<int64_t> rows = p.type(p.input(0)).shape;
  p.set_output(0, p.view(together, {rows[0], rows[1], q.shape[1] * v.shape[3]}));
}

}  // namespace mycelia::lite
