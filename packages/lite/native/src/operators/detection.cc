// Operators behind networks that find objects.
#include <algorithm>
#include <cmath>

#include "../own/own.h"
#include "common.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kMostBoxes = int64_t{1} << 22, kMostCandidates = int64_t{1} << 26;

}  // namespace

// Boxes [1, n, 4] as center and size against anchors [n, 4], scores [1, n, classes]; results: the boxes found as corners, their
// classes, scores, and how many.
OPERATOR(DetectionPostProcess) {
  const Table& a = p.node().attributes;
  const int boxes = p.input(0), scores = p.input(1), anchors = p.input(2);
  if (!p.ok()) return;
  const Type b = p.type(boxes), s = p.type(scores);
  const int64_t n = b.rank() == 3 ? b.shape[1] : 0;
  if (b.shape != std::vector<int64_t>{1, n, 4} || s.rank() != 3 || s.shape[0] != 1 || s.shape[1] != n || p.type(anchors).shape != std::vector<int64_t>{n, 4})
    p.fail(kInferFailed, "boxes " + text_of(b) + ", scores " + text_of(s) + " and anchors " + text_of(p.type(anchors)));
  if (a.get<uint8_t>(kDetectionPostProcess_out_quantized)) p.fail(kNotSupported, "out_quantized");
  DetectionAttributes attributes{};
  const Span<float> scale = a.span<float>(kDetectionPostProcess_scale);
  if (scale.size != 4) p.fail(kOperatorAttribute, "scale has " + std::to_string(scale.size) + " numbers, expected 4");
  for (uint32_t i = 0; i < scale.size && i < 4; ++i) {
    attributes.scale[i] = scale[i];
    if (!(scale[i] != 0)) p.fail(kOperatorAttribute, "a scale is " + std::to_string(scale[i]));
  }
  attributes.overlap = a.get<float>(kDetectionPostProcess_nms_iou_threshold);
  attributes.score = a.get<float>(kDetectionPostProcess_nms_score_threshold);
  attributes.most = a.get<int64_t>(kDetectionPostProcess_max_detections);
  attributes.most_of_class = a.get<int64_t>(kDetectionPostProcess_detections_per_class);
  attributes.classes = a.get<int64_t>(kDetectionPostProcess_num_classes);
  attributes.classes_of_box = a.get<int64_t>(kDetectionPostProcess_max_classes_per_detection);
  attributes.regular = a.get<uint8_t>(kDetectionPostProcess_use_regular_nms);
  const auto in_range = [](int64_t value, int64_t most) { return value >= 1 && value <= most; };
  if (p.ok() && (!in_range(attributes.classes, s.shape[2]) || !in_range(attributes.most, kMostBoxes) || !in_range(attributes.classes_of_box, kMostBoxes) ||
                 attributes.most_of_class < 0 || attributes.most * attributes.classes_of_box > kMostBoxes))
    p.fail(kOperatorAttribute, "num_classes, max_detections or max_classes_per_detection do not fit " + text_of(s));
  if (!p.ok()) return;
  const int64_t most = attributes.most * attributes.classes_of_box;
  const Type each{MYC_F32, {1, most}};
  const std::vector<int> made =
      p.emit_all("detections", {boxes, scores, anchors}, attributes, {Type{MYC_F32, {1, most, 4}}, each, each, Type{MYC_F32, {1}}});
  for (size_t i = 0; i < std::min<size_t>(4, p.node().outputs.size()); ++i) p.set_output(i, made[i]);
}

int selected_boxes(Planner& p, int boxes, int scores, int most_of_class, int overlap, int score, bool center) {
  const Type b = p.type(boxes), s = p.type(scores);
  const bool fits = b.rank() == 3 && s.rank() == 3 && b.shape[2] == 4 && b.shape[0] == s.shape[0] && b.shape[1] == s.shape[2];
  if (p.ok() && (!fits || b.dtype != MYC_F32 || s.dtype != MYC_F32)) p.fail(kInferFailed, "boxes " + text_of(b) + " and scores " + text_of(s));
  const int64_t most = std::clamp<int64_t>(number_of(p, most_of_class, "the most boxes of a class"), 0, p.ok() && fits ? b.shape[1] : 0);
  for (const int value : {overlap, score})
    if (p.ok() && value >= 0 && (p.type(value).dtype != MYC_F32 || element_count(p.type(value).shape) != 1))
      p.fail(kInferFailed, "a threshold " + text_of(p.type(value)));
  if (!p.ok()) return 0;
  const int64_t candidates = s.shape[0] * s.shape[1] * most;
  if (candidates > kMostCandidates) return p.fail(kNotSupported, std::to_string(candidates) + " boxes to select");
  const NmsAttributes attributes{center, most, 0, 0, 0};
  const std::vector<int> made =
      p.emit_all("nms", {boxes, scores, overlap, score}, attributes, {Type{MYC_I64, {1}}, Type{MYC_I64, {candidates, 3}}});
  const int64_t n = number_of(p, made[0], "the number of boxes");
  return p.ok() ? p.emit("take_rows", {made[1]}, Type{MYC_I64, {n, 3}}) : 0;
}

OPERATOR(NonMaxSuppression) {  // boxes, scores, the most boxes of a class, thresholds of overlap and of scores
  if (p.node().inputs.size() < 4) p.fail(kNotSupported, "fewer than 4 inputs");
  const int boxes = p.input(0), scores = p.input(1), most = p.input(2), overlap = p.input(3), score = p.optional_input(4);
  if (!p.ok()) return;
  const int made = selected_boxes(p, boxes, scores, most, overlap, score, p.node().attributes.get<int64_t>(kNonMaxSuppression_center_point_box) != 0);
  if (p.ok()) p.set_output(0, p.emit("cast", {made}, myc_cast_attrs{MYC_I32}, Type{MYC_I32, p.type(made).shape}));
}

// Anchors of the places of an image [N, H, W, C] in another one: corners, and beside them the variances.
OPERATOR(PriorBox) {
  const Table& a = p.node().attributes;
  const Type places = p.type(p.input(0)), image = p.type(p.input(1));
  if (p.ok() && (places.rank() != 4 || image.rank() != 4)) p.fail(kInferFailed, "images must be [N, H, W, C], but are " + text_of(places));
  const std::vector<int64_t> least = numbers(a.span<int64_t>(kPriorBox_min_sizes)), most = numbers(a.span<int64_t>(kPriorBox_max_sizes));
  const Span<float> ratios = a.span<float>(kPriorBox_aspect_ratios), given = a.span<float>(kPriorBox_variances);
  if (least.empty() || (!most.empty() && most.size() != least.size())) p.fail(kOperatorAttribute, "min_sizes and max_sizes differ in number");
  if (given.size != 0 && given.size != 1 && given.size != 4) p.fail(kOperatorAttribute, std::to_string(given.size) + " variances, expected 4");
  if (!p.ok()) return;
  std::vector<float> sides{1};
  for (uint32_t i = 0; i < ratios.size; ++i) {
    const float ratio = ratios[i];
    if (!(ratio > 0)) p.fail(kOperatorAttribute, "an aspect ratio of " + std::to_string(ratio));
    if (!p.ok()) return;
    if (std::any_of(sides.begin(), sides.end(), [&](float known) { return std::abs(known - ratio) < 1e-6f; })) continue;
    sides.push_back(ratio);
    if (a.get<uint8_t>(kPriorBox_flip)) sides.push_back(1 / ratio);
  }
  const auto size_of = [&](uint16_t field, int64_t found) { return static_cast<float>(a.get<int64_t>(field) ? a.get<int64_t>(field) : found); };
  const float wide = size_of(kPriorBox_image_size_w, image.shape[2]), high = size_of(kPriorBox_image_size_h, image.shape[1]);
  const int64_t rows = places.shape[1], columns = places.shape[2];
  const float across = wide / static_cast<float>(columns), down = high / static_cast<float>(rows);
  const float step_w = a.get<float>(kPriorBox_step_w), step_h = a.get<float>(kPriorBox_step_h);
  if ((step_w != 0 && step_w != across) || (step_h != 0 && step_h != down)) p.fail(kNotSupported, "step_w and step_h that do not follow from the sizes");
  const float offset = a.get<float>(kPriorBox_offset);
  const int64_t each = static_cast<int64_t>(least.size() * sides.size() + most.size());
  if (rows * columns > kMostBoxes / each) p.fail(kNotSupported, "anchors of that number");
  if (!p.ok()) return;
  std::vector<float> found;
  for (int64_t i = 0; i < rows * columns; ++i) {
    const float x = (static_cast<float>(i % columns) + offset) * across, y = (static_cast<float>(i / columns) + offset) * down;
    const auto box = [&](float w, float h) {
      for (const float at : {(x - w / 2) / wide, (y - h / 2) / high, (x + w / 2) / wide, (y + h / 2) / high})
        found.push_back(a.get<uint8_t>(kPriorBox_clip) ? std::clamp(at, 0.0f, 1.0f) : at);
    };
    for (size_t k = 0; k < least.size(); ++k) {
      const float side = static_cast<float>(least[k]);
      box(side, side);
      if (!most.empty()) {
        const float between = std::sqrt(side * static_cast<float>(most[k]));
        box(between, between);
      }
      for (size_t r = 1; r < sides.size(); ++r) box(side * std::sqrt(sides[r]), side / std::sqrt(sides[r]));
    }
  }
  const size_t count = found.size();
  for (size_t i = 0; i < count; ++i) found.push_back(given.size ? given[given.size == 4 ? i % 4 : 0] : 0.1f);
  p.set_output(0, p.made_constant({MYC_F32, {1, static_cast<int64_t>(count), 1, 2}}, found.data()));
}

}  // namespace mycelia::lite
