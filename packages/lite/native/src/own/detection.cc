// Boxes of a detector: which remain where they overlap.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "own.h"

namespace mycelia::lite {

namespace {

struct Box {
  float top, left, bottom, right;
};

float overlap(const Box& a, const Box& b) {
  const float area_a = (a.bottom - a.top) * (a.right - a.left), area_b = (b.bottom - b.top) * (b.right - b.left);
  if (area_a <= 0 || area_b <= 0) return 0;
  const float high = std::max(std::min(a.bottom, b.bottom) - std::max(a.top, b.top), 0.0f);
  const float wide = std::max(std::min(a.right, b.right) - std::max(a.left, b.left), 0.0f);
  return high * wide / (area_a + area_b - high * wide);
}

// Numbers 0 .. n - 1, the largest score first, equal ones in their order.
std::vector<int64_t> by_score(const std::vector<float>& scores) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int64_t i) { return std::isnan(scores[i]) ? -INFINITY : scores[i]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) > key(b); });
  return order;
}

std::vector<int64_t> selected(const std::vector<Box>& boxes, const std::vector<float>& scores, int64_t most, const DetectionAttributes& a) {
  std::vector<int64_t> found;
  for (const int64_t i : by_score(scores)) {
    if (static_cast<int64_t>(found.size()) >= most || !(scores[i] >= static_cast<float>(a.score))) break;
    const auto covers = [&](int64_t k) { return overlap(boxes[k], boxes[i]) > static_cast<float>(a.overlap); };
    if (std::none_of(found.begin(), found.end(), covers)) found.push_back(i);
  }
  return found;
}

struct Found {
  int64_t box, label;
  float score;
};

}  // namespace

int32_t own_detections_f32(const myc_call* call) {
  const DetectionAttributes& a = attrs<DetectionAttributes>(call);
  const int64_t n = call->in[0]->shape[1], labels = call->in[1]->shape[2], first = labels - a.classes;  // what is before is background
  const float *codes = in<float>(call, 0), *scores = in<float>(call, 1), *anchors = in<float>(call, 2);
  std::vector<Box> boxes;
  for (int64_t i = 0; i < n; ++i) {
    const float *code = codes + 4 * i, *anchor = anchors + 4 * i;
    const auto scaled = [&](int k, int scale) { return code[k] / static_cast<float>(a.scale[scale]); };
    const float y = scaled(0, 3) * anchor[2] + anchor[0], x = scaled(1, 2) * anchor[3] + anchor[1];
    const float h = 0.5f * std::exp(scaled(2, 0)) * anchor[2], w = 0.5f * std::exp(scaled(3, 1)) * anchor[3];
    boxes.push_back({y - h, x - w, y + h, x + w});
  }
  std::vector<Found> found;
  std::vector<float> of_box(static_cast<size_t>(n));
  if (a.regular) {
    for (int64_t label = 0; label < a.classes; ++label) {
      for (int64_t i = 0; i < n; ++i) of_box[i] = scores[i * labels + first + label];
      for (const int64_t i : selected(boxes, of_box, a.most_of_class, a)) found.push_back({i, label, of_box[i]});
      std::stable_sort(found.begin(), found.end(), [](const Found& x, const Found& y) { return x.score > y.score; });
      if (static_cast<int64_t>(found.size()) > a.most) found.resize(static_cast<size_t>(a.most));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) of_box[i] = *std::max_element(scores + i * labels + first, scores + (i + 1) * labels);
    for (const int64_t i : selected(boxes, of_box, a.most, a)) {
      const std::vector<float> all(scores + i * labels + first, scores + (i + 1) * labels);
      const std::vector<int64_t> order = by_score(all);
      for (int64_t k = 0; k < std::min(a.classes_of_box, a.classes); ++k) found.push_back({i, order[k], all[order[k]]});
    }
  }
  Box* result = out<Box>(call);
  for (int64_t i = 0; i < call->out[1]->size; ++i) {
    const bool there = i < static_cast<int64_t>(found.size());
    result[i] = there ? boxes[found[i].box] : Box{};
    out<float>(call, 1)[i] = there ? static_cast<float>(found[i].label) : 0;
    out<float>(call, 2)[i] = there ? found[i].score : 0;
  }
  *out<float>(call, 3) = static_cast<float>(found.size());
  return MYC_OK;
}

}  // namespace mycelia::lite
