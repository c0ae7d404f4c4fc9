// Operators behind networks that find objects.
#include <algorithm>

#include "../own/own.h"
#include "common.h"

namespace mycelia::lite {

using namespace schema;

namespace {

constexpr int64_t kMostBoxes = int64_t{1} << 22;

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

}  // namespace mycelia::lite
