// What a cropped library has in place of the features that its models do without (features.def): what speeds up does nothing,
// what a model could need tells that it is not there. `mycelia-lite crop` compiles it with LITE_WITHOUT_...
#include <cmath>

#include "execution.h"
#include "kernels.h"
#include "model_file.h"
#include "mycelia/lite/c_api.h"
#include "obfuscation.h"
#include "plan.h"
#include "schema.h"
#include "training.h"

namespace mycelia::lite {

namespace {

[[maybe_unused]] Status left_out(const char* feature) {
  return {kNotSupported, std::string("this library was cropped for models without ") + feature + ": crop it for this one, too"};
}

}  // namespace

#ifndef LITE_WHOLE  // a library for inference alone is the whole one but for training
// Nobody crops a cropped library by running models on it.
void ask_for_kernel(const std::string&, const char*) {}
void ask_for_copies(const char*, const std::vector<uint8_t>&, int32_t, const std::vector<int64_t>&) {}
void ask_for_part(const char*) {}
std::string asked_kernels() { return ""; }
const char* not_here() { return " (this library was cropped for other models: crop it for this one, too)"; }
#endif

#ifdef LITE_WITHOUT_CHAINS
void Planner::join_chains() {}
#endif

#ifdef LITE_WITHOUT_CONTROL
namespace {
constexpr char kControl[] = "subgraphs, loops and shapes that follow from data";
}
Status resolve_calls(int, ModelFile*) { return left_out(kControl); }
Status check_calls(ModelFile*) { return left_out(kControl); }
Status Planner::resume(const Plan&, const std::vector<const uint8_t*>&, const std::vector<std::vector<Type>>&) { return left_out(kControl); }
bool Planner::enter(Item*) { return false; }
void Planner::leave(const Item&) {}
void Planner::take_results(const Item&) {}
bool Planner::is_tail() const { return false; }
Status Execution::run_stages(std::shared_ptr<Stage>, size_t, int, const Sink&) { return left_out(kControl); }
#endif

#ifdef LITE_WITHOUT_INTEGERS
void integer_operator(Planner& p) { p.fail(kNotSupported, left_out("layers of integers").text); }
#endif

#ifdef LITE_WITHOUT_OBFUSCATION
Status reveal(const Table& root, Revealed*) { return root.get<uint8_t>(schema::kMetaGraph_obfuscate) ? left_out("obfuscation") : Status(); }
#endif

#ifdef LITE_WITHOUT_OUTSIDE
Status OutsideFiles::find(std::string_view, int64_t, int64_t, const uint8_t**, uint64_t*) {
  return {kNotSupported, "lie in another file: " + left_out("such weights").text};
}
#endif

#ifdef LITE_WITHOUT_PANELS
Status read_panels(const FileNode&, ModelFile*, bool* found) { return *found = false, Status(); }
int Planner::panels(size_t, Type*) { return -1; }
int Planner::unpacked(uint32_t) { return fail(kNotSupported, left_out("packed weights").text); }
#endif

#ifdef LITE_WITHOUT_PARTS
void Planner::write_parts_in_place() {}
#endif

#ifdef LITE_WITHOUT_SCALES
std::shared_ptr<Scales> read_scales(const Table&, int32_t) { return nullptr; }
const char* const kUnreadScales = "but this library was cropped for models without quantized weights: crop it for this one, too";
Status find_scales(ModelFile*) { return {}; }
std::vector<float> groups_first(const std::vector<float>& numbers, int64_t) { return numbers; }
Status read_low_bit(const FileNode& node, ModelFile*, bool* found) {
  *found = node.kind == schema::kOp_Custom && node.attributes.text(schema::kCustom_type) == "low_bit";
  return *found ? Status(kNotSupported, left_out("quantized weights").text) : Status();
}
bool Planner::low_bit(size_t, int, bool, LowBit*) { return false; }
int Planner::low_bit_linear(int, const LowBit&, int, int8_t, const Type&) { return -1; }
int Planner::low_bit_conv(int, const LowBit&, int, const Windows&, int8_t, const Type&) { return -1; }
int Planner::scaled(int, const Scales&, const Type&) { return fail(kNotSupported, left_out("quantized weights").text); }
#endif

#ifdef LITE_WITHOUT_STATES
Status read_state(const FileNode&, size_t, ModelFile*, bool* found) { return *found = false, Status(); }
Status bind_states(ModelFile*) { return {}; }
Status Session::open_variables() { return {}; }
void Session::add_variables(std::vector<Type>*) const {}
void Session::add_variables(std::vector<Execution::Argument>*) const {}
uint8_t* Session::place_of(const Plan&, size_t output) { return outputs_[output].data; }
void Session::keep_variables(const Plan&) {}
Status Session::check_states(const Plan&) const { return {}; }
#endif

#ifdef LITE_WITHOUT_TRAINING
Status read_training(const FileNode&, ModelFile*) {
  return {kNotSupported, "the model learns on the device, which this library cannot: link libmycelia_lite_train, or export the model for inference"};
}
Status check_training(const ModelFile&) { return {}; }
bool lower_training(Planner&, const std::string&) { return false; }
void Planner::update_in_place() {}
std::unique_ptr<Training> Training::of(Session&, const Options&) { return nullptr; }
MSStatus told(const Status& status);  // c_api/border.h
#endif

#ifdef LITE_WITHOUT_WIDE
int32_t Planner::wider(const char*, int32_t) const { return -1; }
std::vector<int> Planner::emit_wide(const char*, const std::vector<int>&, const std::vector<uint8_t>&, const std::vector<Type>& outs, int32_t, int32_t) {
  return std::vector<int>(outs.size());
}
#endif

}  // namespace mycelia::lite

#ifdef LITE_WITHOUT_TRAINING
namespace {
MSStatus cannot_train() { return mycelia::lite::told({mycelia::lite::kNotSupported, "this library is for inference alone: link libmycelia_lite_train"}); }
template <class Made>
Made no(Made made) {
  cannot_train();
  return made;
}
}  // namespace
MSStatus MSModelSetTrainMode(MSModelHandle, bool) { return cannot_train(); }
bool MSModelGetTrainMode(MSModelHandle) { return no(false); }
MSStatus MSModelSetLearningRate(MSModelHandle, float) { return cannot_train(); }
float MSModelGetLearningRate(MSModelHandle) { return no(NAN); }
MSStatus MSModelSetupVirtualBatch(MSModelHandle, int32_t, float, float) { return cannot_train(); }
MSTensorHandleArray MSModelGetWeights(MSModelHandle) { return no(MSTensorHandleArray{0, nullptr}); }
MSTensorHandleArray MSModelGetTrainableParams(MSModelHandle) { return no(MSTensorHandleArray{0, nullptr}); }
MSTensorHandleArray MSModelGetOptimizerParams(MSModelHandle) { return no(MSTensorHandleArray{0, nullptr}); }
MSTensorHandleArray MSModelGetGradients(MSModelHandle) { return no(MSTensorHandleArray{0, nullptr}); }
MSStatus MSModelApplyGradients(MSModelHandle, MSTensorHandleArray) { return cannot_train(); }
MSStatus MSExportModel(MSModelHandle, MSModelType, const char*, MSQuantizationType, bool, const char* const*, size_t) { return cannot_train(); }
MSStatus MSExportModelBuffer(MSModelHandle, MSModelType, char**, size_t*, MSQuantizationType, bool, const char* const*, size_t) { return cannot_train(); }
void MSFreeBuffer(char*) {}
#endif
