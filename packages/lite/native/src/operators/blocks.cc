// Operators that move elements between the sides of images, their channels and the batch.
#include <algorithm>
#include <cstdint>

#include "common.h"

namespace mycelia::lite {

using namespace schema;

namespace {

// The elements of a view in another order of its axes, in the end as `shape`.
int rearranged(Planner& p, int x, const std::vector<int64_t>& as, const std::vector<int64_t>& order, std::vector<int64_t> shape) {
  const int seen = p.view(x, as);
  Type out{p.type(x).dtype, {}};
  for (int64_t axis : order) out.shape.push_back(as[axis]);
  const myc_transpose_attrs attributes{ints(p, order)};
  const int turned = p.emit("transpose", {seen}, attributes, out);
  return p.ok() ? p.view(turned, std::move(shape)) : 0;
}

// Images [N, H, W, C] and a block size of 1 or more.
bool takes_blocks(Planner& p, const Type& image, int64_t block) {
  if (image.rank() != 4) p.fail(kInferFailed, "images must be [N, H, W, C], but are " + text_of(image));
  if (block < 1 || block > (1 << 20)) p.fail(kOperatorAttribute, "block_size " + std::to_string(block) + " is out of range");
  return p.ok();
}

}  // namespace

OPERATOR(DepthToSpace) {
  const Table& a = p.node().attributes;
  const int x = p.input(0);
  const int64_t b = a.get<int64_t>(kDepthToSpace_block_size);
  const std::string_view mode = a.text(kDepthToSpace_mode);
  const Type image = p.type(x);
  if (!takes_blocks(p, image, b)) return;
  const int64_t n = image.shape[0], h = image.shape[1], w = image.shape[2], c = image.shape[3] / (b * b);
  if (image.shape[3] % (b * b)) {
    p.fail(kInferFailed, "the channels of " + text_of(image) + " are no multiple of " + std::to_string(b * b));
    return;
  }
  const std::vector<int64_t> out{n, h * b, w * b, c};
  p.set_output(0, mode == "CRD" ? rearranged(p, x, {n, h, w, c, b, b}, {0, 1, 4, 2, 5, 3}, out)
                                : rearranged(p, x, {n, h, w, b, b, c}, {0, 1, 3, 2, 4, 5}, out));
}

OPERATOR(SpaceToDepth) {
  const int x = p.input(0);
  const int64_t b = p.node().attributes.get<int64_t>(kSpaceToDepth_block_size);
  const Type image = p.type(x);
  if (!takes_blocks(p, image, b)) return;
  const int64_t n = image.shape[0], h = image.shape[1] / b, w = image.shape[2] / b, c = image.shape[3];
  if (image.shape[1] % b || image.shape[2] % b) {
    p.fail(kInferFailed, "the sides of " + text_of(image) + " are no multiples of " + std::to_string(b));
    return;
  }
  p.set_output(0, rearranged(p, x, {n, h, b, w, b, c}, {0, 1, 3, 2, 4, 5}, {n, h, w, c * b * b}));
}

namespace {

struct Blocks {
  int64_t sides[2] = {1, 1};
  int64_t border[4] = {0, 0, 0, 0};  // top, bottom, left, right
};

// Sizes of blocks and what is added or cut off, which are attributes or inputs 1 and 2; the image must be [N, H, W, C].
Blocks read_blocks(Planner& p, const Type& image, uint16_t size_field, uint16_t border_field) {
  const Table& a = p.node().attributes;
  std::vector<int64_t> sides = numbers(a.span<int64_t>(size_field)), border;
  const TableSpan rows = a.table(border_field).tables(kVec2D_data);
  for (uint32_t i = 0; i < rows.size() && i <= 2; ++i)
    for (int64_t n : numbers(rows[i].span<int64_t>(kVec_data))) border.push_back(n);
  if (p.node().inputs.size() == 3) {
    sides = p.integers(p.input(1), "the block's shape");
    border = p.integers(p.input(2), "the border");
  }
  if (p.ok() && image.rank() != 4) p.fail(kInferFailed, "images must be [N, H, W, C], but are " + text_of(image));
  if (p.ok() && (sides.empty() || sides.size() > 2 || border.size() != 2 * sides.size()))
    p.fail(kOperatorAttribute, "blocks of " + std::to_string(sides.size()) + " sides with " + std::to_string(border.size()) + " borders");
  Blocks found;
  for (size_t i = 0; i < sides.size() && p.ok(); ++i) {
    found.sides[i] = sides[i];
    if (sides[i] < 1 || sides[i] > (1 << 20)) p.fail(kOperatorAttribute, "a block of " + std::to_string(sides[i]) + ", out of range");
  }
  for (size_t i = 0; i < border.size() && p.ok(); ++i) {
    found.border[i] = border[i];
    if (border[i] < 0 || border[i] > (1 << 20)) p.fail(kOperatorAttribute, "a border of " + std::to_string(border[i]) + ", out of range");
  }
  return found;
}

void space_to_batch(Planner& p, uint16_t size_field, uint16_t border_field) {
  const int x = p.input(0);
  const Type image = p.type(x);
  const Blocks b = read_blocks(p, image, size_field, border_field);
  if (!p.ok()) return;
  Type wide = image;
  wide.shape[1] += b.border[0] + b.border[1], wide.shape[2] += b.border[2] + b.border[3];
  if (wide.shape[1] % b.sides[0] || wide.shape[2] % b.sides[1]) {
    p.fail(kInferFailed, "the sides of " + text_of(wide) + " are no multiples of the block's");
    return;
  }
  const myc_pad_constant_attrs pads{ints({0, 0, b.border[0], b.border[1], b.border[2], b.border[3], 0, 0}), 0};
  const int y = wide.shape == image.shape ? x : p.emit("pad_constant", {x}, pads, wide);
  const int64_t n = image.shape[0], h = wide.shape[1] / b.sides[0], w = wide.shape[2] / b.sides[1], c = image.shape[3];
  if (p.ok())
    p.set_output(0, rearranged(p, y, {n, h, b.sides[0], w, b.sides[1], c}, {2, 4, 0, 1, 3, 5}, {n * b.sides[0] * b.sides[1], h, w, c}));
}

void batch_to_space(Planner& p, uint16_t size_field, uint16_t border_field) {
  const int x = p.input(0);
  const Type image = p.type(x);
  const Blocks b = read_blocks(p, image, size_field, border_field);
  if (!p.ok()) return;
  const int64_t each = b.sides[0] * b.sides[1], n = image.shape[0] / each, h = image.shape[1], w = image.shape[2], c = image.shape[3];
  const int64_t high = h * b.sides[0], wide = w * b.sides[1];
  if (image.shape[0] % each || b.border[0] + b.border[1] > high || b.border[2] + b.border[3] > wide) {
    p.fail(kInferFailed, text_of(image) + " does not fit the blocks");
    return;
  }
  const int y = rearranged(p, x, {b.sides[0], b.sides[1], n, h, w, c}, {2, 3, 0, 4, 1, 5}, {n, high, wide, c});
  const int64_t down = high - b.border[0] - b.border[1], across = wide - b.border[2] - b.border[3];
  if (p.ok()) p.set_output(0, sliced(p, y, ints({0, b.border[0], b.border[2], 0}), ints({n, down, across, c}), ints({1, 1, 1, 1})));
}

}  // namespace

OPERATOR(SpaceToBatch) { space_to_batch(p, kSpaceToBatch_block_size, kSpaceToBatch_paddings); }
OPERATOR(SpaceToBatchND) { space_to_batch(p, kSpaceToBatchND_block_shape, kSpaceToBatchND_paddings); }
OPERATOR(BatchToSpace) { batch_to_space(p, kBatchToSpace_block_size, kBatchToSpace_crops); }
OPERATOR(BatchToSpaceND) { batch_to_space(p, kBatchToSpaceND_block_shape, kBatchToSpaceND_crops); }

}  // namespace mycelia::lite
