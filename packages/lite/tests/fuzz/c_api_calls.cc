// Random calls of the C interface: `c_api_calls SEED CALLS THREADS FOLDER MODEL.ms...`
//
// Handles are live, NULL, freed, of another kind, half built or random numbers; names, shapes, types, sizes and files are right or
// wrong; callbacks and delegates fail, throw, call back. Every call that fails must have a code of the interface and a reason of
// its own. With several threads all share the same handles; then what only one thread may do (follow a pointer that belongs to
// something that another one frees) is left out. The last line has how many calls went well and how many were refused.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "mycelia/lite/c_api.h"

namespace {

enum Kind { kModel, kRunner, kContext, kDevice, kTensor, kKinds };

struct World {
  bool alone = true;  // one thread
  std::string folder;
  std::vector<std::string> files;
  std::vector<std::vector<char>> contents;
  std::mutex guard;
  std::vector<void*> handles[kKinds];  // live ones and freed ones
  std::vector<const void*> offered;  // to delegates, now or before
  std::vector<std::unique_ptr<char[]>> buffers;
  std::atomic<size_t> well{0}, refused{0};
} world;

[[noreturn]] void fault(const char* call, const std::string& what) {
  std::printf("%s: %s\n", call, what.c_str());
  std::fflush(stdout);
  std::abort();
}

class Caller {
 public:
  explicit Caller(uint64_t seed) : random_(seed) {}

  void step() {
    switch (below(7)) {
      case 0: return contexts();
      case 1: return devices();
      case 2: return tensors();
      case 3: return building();
      case 4: return below(3) ? predicting() : runners();
      case 5: return below(2) ? asking() : others();
      default: return below(4) ? predicting() : freeing();
    }
  }

  // A call within a call.
  void within(uint64_t rarely) {
    if (below(rarely) || depth_ >= 2) return;
    ++depth_;
    step();
    --depth_;
  }

  // ---- what calls are given
  uint64_t below(uint64_t n) { return random_() % n; }
  template <class T>
  T one(std::initializer_list<T> choices) { return choices.begin()[below(choices.size())]; }

  void* handle(Kind kind) {
    const std::lock_guard<std::mutex> lock(world.guard);
    if (!below(12)) kind = static_cast<Kind>(below(kKinds));
    if (!below(20)) return nullptr;
    if (!below(25)) return reinterpret_cast<void*>(static_cast<uintptr_t>(random_()));
    std::vector<void*>& all = world.handles[kind];
    if (all.empty()) return nullptr;
    const size_t recent = std::min<size_t>(all.size(), below(6) ? 4 : all.size());
    return all[all.size() - 1 - below(recent)];
  }
  void* keep(Kind kind, void* made) {
    const std::lock_guard<std::mutex> lock(world.guard);
    if (made) world.handles[kind].push_back(made);
    return made;
  }
  char* buffer(size_t bytes) {
    std::unique_ptr<char[]> made(new char[bytes]());
    const std::lock_guard<std::mutex> lock(world.guard);
    world.buffers.push_back(std::move(made));
    return world.buffers.back().get();
  }
  std::vector<int64_t> shape() {
    std::vector<int64_t> sizes(below(10) ? below(5) : below(12));
    for (int64_t& n : sizes) n = below(8) ? one<int64_t>({0, 1, 1, 2, 3, 5, 12, 32}) : one<int64_t>({-1, -5, INT64_MAX, int64_t{1} << 46, INT64_MIN});
    return sizes;
  }
  MSDataType type() { return below(6) ? kMSDataTypeNumberTypeFloat32 : static_cast<MSDataType>(one({0, 30, 34, 35, 43, 44, 42, 32, -1, 12, 99, 1 << 30})); }
  std::string path() {
    if (below(4)) return world.files[below(world.files.size())];
    return below(5) ? world.folder + one({"/nowhere.ms", "", "/cut.ms", "/noise.ms", "/pipe", "/config.ini", "/empty"}) : "/dev/zero";
  }
  const char* word() { return one({"x", "y", "z", "shape", "n", "", "nobody", "precision", "partition", "packed_bytes", "memory_plan", "execution_plan", "common"}); }

  // ---- what calls answer
  bool check(const char* call, MSStatus status) {
    (status == kMSStatusSuccess ? world.well : world.refused)++;
    if (status == kMSStatusSuccess) return true;
    static const int known[] = {-1, -2, -3, -6, -7, -101, -102, -200, -300, -302, -303, -500, -501};
    if (std::find(std::begin(known), std::end(known), status) == std::end(known)) fault(call, "code " + std::to_string(status));
    said(call);
    return false;
  }
  // The reason of the call that failed is its own, not that of `before`.
  void said(const char* call) {
    const char* const text = MSGetLastError();
    if (!text || std::strlen(text) < 8 || !std::strcmp(text, "nonce, data or tag is NULL")) fault(call, std::string("no reason: ") + (text ? text : "NULL"));
  }
  template <class T>
  T* there(const char* call, T* found) {
    (found ? world.well : world.refused)++;
    if (!found) said(call);
    return found;
  }
  // A reason that no call but this one gives.
  void before() {
    MSEncryptInPlace(nullptr, 0, nullptr, nullptr, 0, nullptr);
  }
#define TRY(call) (before(), check(#call, call))
#define GET(call) (before(), there(#call, call))

  // ---- calls
  void contexts() {
    if (!below(4)) keep(kContext, MSContextCreate());
    void* const context = handle(kContext);
    const int32_t cores[3] = {one({0, 0, -1, 1 << 30}), 0, 1};
    size_t count = 0;
    switch (below(10)) {
      case 0: TRY(MSContextSetThreadNum(context, one({1, 1, 2, 2, 3, 0, -1, 1000, INT32_MAX}))); break;
      case 1: TRY(MSContextSetInterOpParallelNum(context, one({1, 1, 2, 0, -7, 50, world.alone ? INT32_MAX : 3}))); break;
      case 2: TRY(MSContextSetThreadAffinityMode(context, one({0, 0, 1, 2, 3, -1}))); break;
      case 3: TRY(MSContextSetThreadAffinityCoreList(context, below(5) ? cores : nullptr, below(4))); break;
      case 4:
        if (const int32_t* list = (before(), MSContextGetThreadAffinityCoreList(context, &count)); list && count && world.alone) count += static_cast<size_t>(list[count - 1]);
        break;
      case 5: TRY(MSContextSetEnableParallel(context, below(2))); break;
      case 6: TRY(MSContextSetSharedThreadPool(context, below(3) == 0)); break;
      case 7: TRY(MSContextAddDeviceInfo(context, handle(kDevice))); break;
      case 8: delegate(context); break;
      default: MSContextGetThreadNum(context), MSContextGetThreadAffinityMode(context), MSContextGetEnableParallel(context), MSContextGetInterOpParallelNum(context);
    }
  }
  void devices() {
    if (below(2)) keep(kDevice, GET(MSDeviceInfoCreate(static_cast<MSDeviceType>(one({0, 0, 0, 1, 2, 60, 100, -9})))));
    void* const device = handle(kDevice);
    switch (below(6)) {
      case 0: TRY(MSDeviceInfoSetProvider(device, below(4) ? word() : nullptr)); break;
      case 1: TRY(MSDeviceInfoSetProviderDevice(device, below(4) ? word() : nullptr)); break;
      case 2: TRY(MSDeviceInfoSetEnableFP16(device, below(2))); break;
      case 3: TRY(MSDeviceInfoSetFrequency(device, one({1, 4, 0, 5, -1}))); break;
      case 4: MSDeviceInfoGetEnableFP16(device), MSDeviceInfoGetFrequency(device), MSDeviceInfoGetDeviceType(device); break;
      default: GET(MSDeviceInfoGetProvider(device)), GET(MSDeviceInfoGetProviderDevice(device));
    }
  }
  void tensors() {
    void* const tensor = handle(kTensor);
    const std::vector<int64_t> sizes = shape();
    size_t count = 0;
    switch (below(9)) {
      case 0: {
        static const char data[64] = {};
        const size_t given = below(3) ? 0 : below(64);
        keep(kTensor, GET(MSTensorCreate(below(8) ? word() : nullptr, type(), below(9) ? sizes.data() : nullptr, sizes.size(), given ? data : nullptr, given)));
        break;
      }
      case 1:
        keep(kTensor, GET(MSTensorClone(tensor)));
        keep(kTensor, GET(MSTensorCreateReference(word(), type(), below(9) ? sizes.data() : nullptr, sizes.size(), nullptr)));
        break;
      case 2: TRY(MSTensorSetName(tensor, below(5) ? word() : nullptr)); break;
      case 3: TRY(MSTensorSetDataType(tensor, type())); break;
      case 4: TRY(MSTensorSetShape(tensor, below(9) ? sizes.data() : nullptr, sizes.size())); break;
      case 5: TRY(MSTensorSetFormat(tensor, static_cast<MSFormat>(below(30)))); break;
      case 6: {
        const size_t bytes = world.alone ? MSTensorGetDataSize(tensor) : size_t{1} << 24;
        if (bytes > size_t{1} << 24) break;
        TRY(MSTensorSetData(tensor, below(3) ? buffer(bytes + 16) : nullptr));
        if (world.alone && below(2)) TRY(MSTensorSetData(tensor, buffer(bytes + 16) + 1));
        break;
      }
      case 7:
        if (void* const data = GET(MSTensorGetMutableData(tensor)); data && world.alone) fill(tensor, data);
        break;
      default:
        if (const int64_t* got = (before(), MSTensorGetShape(tensor, below(4) ? &count : nullptr)); got && count && world.alone) count += static_cast<size_t>(got[count - 1]);
        MSTensorGetDataType(tensor), MSTensorGetFormat(tensor), MSTensorGetElementNum(tensor), MSTensorGetDataSize(tensor);
        if (const char* name = GET(MSTensorGetName(tensor)); name && world.alone) count += std::strlen(name);
    }
  }
  void fill(void* tensor, void* data) {
    const size_t bytes = MSTensorGetDataSize(tensor);
    if (bytes > size_t{1} << 22) return;
    if (MSTensorGetDataType(tensor) != kMSDataTypeNumberTypeFloat32) {  // sizes, times that a loop runs, flags: small ones
      std::memset(data, 0, bytes);
      if (bytes) *static_cast<char*>(data) = static_cast<char>(below(2) ? 1 : below(4));
      return;
    }
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
      const float number = static_cast<float>(below(100)) / 10 - 3;
      std::memcpy(static_cast<char*>(data) + i, &number, 4);
    }
  }

  void building() {
    if (below(3) == 0) keep(kModel, MSModelCreate());
    void* const model = handle(kModel);
    void* const context = below(3) ? nullptr : handle(kContext);
    const auto type = static_cast<MSModelType>(below(10) ? 4 : one({0, -1, 7, 1 << 20}));
    const std::string where = path();
    switch (below(8)) {
      case 0:
      case 1: {
        const std::vector<char>& content = world.contents[below(world.contents.size())];
        TRY(MSModelBuild(model, below(12) ? content.data() : nullptr, below(4) ? content.size() : below(content.size()), type, context));
        break;
      }
      case 2: TRY(MSModelBuildFromFile(model, below(12) ? where.c_str() : nullptr, type, context)); break;
      case 3: TRY(MSModelShareWorkspace(model, handle(kModel))); break;
      case 4: TRY(MSModelBuildFromModel(model, handle(kModel), context)); break;
      case 5: TRY(MSModelBuildFromEncryptedFile(model, below(9) ? where.c_str() : nullptr, type, context, below(4) ? "0123456789abcdef" : nullptr, one<size_t>({16, 16, 0, 5}), below(6) ? "AES-GCM" : nullptr)); break;
      case 6: TRY(MSModelLoadConfig(model, below(9) ? where.c_str() : nullptr)); break;
      default: TRY(MSModelUpdateConfig(model, below(9) ? word() : nullptr, below(9) ? one({"x", "enable_pre_inference"}) : nullptr, below(9) ? one({"true", "data_type:float16", "?"}) : nullptr));
    }
  }

  // Inputs of the model, sometimes others; in a list of our own.
  std::vector<void*> inputs(void* model) {
    std::vector<void*> found;
    for (const char* name : {"x", "shape", "n", "c"})
      if (void* const tensor = MSModelGetInputByTensorName(model, name)) found.push_back(tensor);
    if (!below(8)) found.push_back(handle(kTensor));
    for (void*& tensor : found)
      if (!below(12)) tensor = handle(kTensor);
    if (!below(12) && !found.empty()) found.pop_back();
    return found;
  }
  void resize(void* model) {
    std::vector<void*> list = inputs(model);
    std::vector<MSShapeInfo> infos(list.size() + 1);
    for (size_t i = 0; i < list.size(); ++i) {
      size_t rank = 0;
      const int64_t* now = world.alone ? MSTensorGetShape(list[i], &rank) : nullptr;
      const std::vector<int64_t> random = shape();
      infos[i].shape_num = below(30) ? (now && below(5) ? rank : random.size()) : 33 + below(1000);
      for (size_t d = 0; d < std::min<size_t>(infos[i].shape_num, MS_MAX_SHAPE_NUM); ++d)
        infos[i].shape[d] = now && d < rank && now[d] > 0 && below(5) ? now[d] : d < random.size() ? random[d] : 1 + static_cast<int64_t>(below(3));
    }
    TRY(MSModelResize(model, {list.size(), list.data()}, below(15) ? infos.data() : nullptr, below(10) ? list.size() : below(4)));
  }
  void predicting() {
    void* const model = handle(kModel);
    if (!below(3)) resize(model);
    std::vector<void*> list = inputs(model);
    if (world.alone)
      for (void* tensor : list)
        if (void* const data = below(2) ? MSTensorGetMutableData(tensor) : nullptr) fill(tensor, data);
    MSTensorHandleArray outputs{0, nullptr};
    const MSTensorHandleArray given{list.size(), below(15) ? list.data() : nullptr};
    MSTensorHandleArray* const results = below(4) ? &outputs : nullptr;
    bool fine;
    if (below(3)) fine = TRY(MSModelPredict(model, given, results, below(5) ? nullptr : plain, below(5) ? nullptr : plain));
    else fine = TRY(MSModelPredictObserved(model, given, results, below(3) ? observed : nullptr, below(3) ? observed : nullptr, this));
    if (!world.alone || !results) return;
    if (!fine && outputs.handle_num) fault("MSModelPredict", "outputs of a run that failed");
    for (size_t i = 0; i < outputs.handle_num; ++i) {
      const auto* data = static_cast<const unsigned char*>(GET(MSTensorGetData(keep(kTensor, outputs.handle_list[i]))));
      if (!data) fault("MSModelPredict", "an output without elements");
      for (size_t b = 0; b < MSTensorGetDataSize(outputs.handle_list[i]); ++b) sum_ += data[b];
    }
  }
  void asking() {
    void* const model = handle(kModel);
    double times[4];
    std::vector<MSNodeProfile> nodes(200);
    size_t places = below(4) ? nodes.size() : below(3);
    MSTensorHandleArray found{0, nullptr};
    switch (below(10)) {
      case 9: TRY(MSModelRun(model)); break;
      case 0: TRY(MSModelTimeRuns(model, below(2), below(3), below(6) ? times : nullptr)); break;
      case 1: TRY(MSModelTimeRuns(model, SIZE_MAX, 1 + below(3), times)); break;
      case 2:
        if (TRY(MSModelProfile(model, below(3), below(5) ? nodes.data() : nullptr, below(9) ? &places : nullptr)) && world.alone)
          for (size_t i = 0; i < std::min(places, nodes.size()); ++i) sum_ += nodes[i].node_name ? std::strlen(nodes[i].node_name) : 0;
        break;
      case 3:
        if (const char* text = GET(MSModelGetInfo(model, below(9) ? word() : nullptr)); text && world.alone) sum_ += std::strlen(text);
        break;
      case 4:
      case 5: found = below(2) ? MSModelGetInputs(model) : MSModelGetOutputs(model); break;
      case 6: keep(kTensor, GET(MSModelGetOutputByTensorName(model, below(9) ? word() : nullptr))); break;
      case 7: found = MSModelGetOutputsByNodeName(model, below(9) ? one({"y", "e", "z", "nobody"}) : nullptr); break;
      default: {
        std::vector<void*> list(below(3));
        for (void*& tensor : list) tensor = handle(kTensor);
        TRY(MSModelUpdateWeights(model, {list.size(), below(9) ? list.data() : nullptr}));
      }
    }
    for (size_t i = 0; i < found.handle_num && world.alone; ++i) keep(kTensor, found.handle_list[i]);
  }
  void others() {
    char data[40] = {}, tag[16];
    sum_ += std::strlen(MSVersion()) + std::strlen(MSInstructionSet()) + std::strlen(MSKernelsInUse());
    MSModelCheckSupport(static_cast<MSDeviceType>(one({0, 1, 100})), kMSModelTypeMindIRLite);
    TRY(MSEncryptInPlace(below(3) ? "0123456789abcdef" : nullptr, one<size_t>({16, 3, 0}), "abcdefghijkl", data, below(40), tag));
    const void* const offered = [&] {
      const std::lock_guard<std::mutex> lock(world.guard);
      return world.offered.empty() || !below(4) ? nullptr : world.offered[below(world.offered.size())];
    }();
    stale(offered);
    const MSCustomOperator calls{nullptr, below(9) ? infer : nullptr, below(9) ? create : nullptr, nullptr};
    if (!below(4)) TRY(MSRegisterCustomOperator(below(9) ? one({"Loop", "range", "nothing", ""}) : nullptr, below(3) ? nullptr : &calls));
  }
  void freeing() {
    void* taken = handle(static_cast<Kind>(below(kKinds)));
    const auto free = one({MSModelDestroy, MSRunnerDestroy, MSContextDestroy, MSDeviceInfoDestroy, MSTensorDestroy, MSTensorDestroy});
    free(below(9) ? &taken : nullptr);
  }
  void runners() {
    if (below(3) == 0) keep(kRunner, MSRunnerCreate());
    void* const runner = handle(kRunner);
    switch (below(6)) {
      case 0: TRY(MSRunnerUpdateConfig(runner, word(), below(9) ? "enable_pre_inference" : nullptr, "true")); break;
      case 1:
      case 2: TRY(MSRunnerInit(runner, below(9) ? path().c_str() : nullptr, below(2) ? nullptr : handle(kContext), one({1, 1, 2, 3, 0, -1, INT32_MAX}))); break;
      case 3: MSRunnerGetInputs(runner), MSRunnerGetOutputs(runner); break;
      default: {
        void *made[4], *tensor = nullptr;
        size_t count = below(6) ? 4 : below(2);
        std::vector<void*> list(below(3));
        for (void*& t : list) t = handle(kTensor);
        if (below(2)) {
          const int64_t sizes[] = {1 + static_cast<int64_t>(below(3)), 1, 32, 32};
          list.assign(1, tensor = MSTensorCreate("x", kMSDataTypeNumberTypeFloat32, sizes, 4, nullptr, 0));
        }
        if (TRY(MSRunnerPredict(runner, {list.size(), below(15) ? list.data() : nullptr}, below(9) ? made : nullptr, below(9) ? &count : nullptr)))
          for (size_t i = 0; i < count; ++i) MSTensorDestroy(&made[i]);
        MSTensorDestroy(&tensor);
      }
    }
  }

  // ---- callbacks
  bool call_back(const MSTensorHandleArray& inputs, const MSTensorHandleArray& outputs, const MSCallBackParamC& node) {
    sum_ += std::strlen(node.node_name) + std::strlen(node.node_type);
    for (const MSTensorHandleArray* side : {&inputs, &outputs})
      for (size_t i = 0; i < side->handle_num; ++i) {
        const auto* data = static_cast<const char*>(MSTensorGetData(side->handle_list[i]));
        const size_t bytes = MSTensorGetDataSize(side->handle_list[i]);
        if (data && bytes) sum_ += static_cast<size_t>(data[0] + data[bytes - 1]);
        if (!below(10)) keep(kTensor, side->handle_list[i]);  // freed when the callback ends
      }
    within(20);
    if (!below(60)) throw std::runtime_error("of a callback");
    if (!below(60)) throw 5;
    return below(40) != 0;
  }
  static bool observed(void* user, MSTensorHandleArray inputs, MSTensorHandleArray outputs, MSCallBackParamC node) {
    return static_cast<Caller*>(user)->call_back(inputs, outputs, node);
  }
  static bool plain(const MSTensorHandleArray inputs, const MSTensorHandleArray outputs, const MSCallBackParamC node) {
    static thread_local Caller own(7);
    return own.call_back(inputs, outputs, node);
  }

  // ---- delegates
  static void freed(void*) {
    static std::atomic<int> times{0};
    if (++times % 3 == 0) throw 1;
  }
  void delegate(void* context) {
    const MSDelegateCallbacks calls{below(12) ? "fuzz" : nullptr, nullptr, below(12) ? build : nullptr, below(3) ? nullptr : freed};
    TRY(MSContextAddDelegate(context, below(12) ? &calls : nullptr));
  }
  static MSStatus build(void*, MSDelegateModel* model) {
    static thread_local Caller own(11);
    return own.offer(model);
  }
  MSStatus offer(MSDelegateModel* model) {
    const size_t count = MSDelegateModelGetNodeNum(model);
    {
      const std::lock_guard<std::mutex> lock(world.guard);
      world.offered.push_back(model);
      world.offered.push_back(MSDelegateModelGetNode(model, below(count + 2)));
    }
    for (size_t i = 0; i < count + 1; ++i) stale(MSDelegateModelGetNode(model, i));
    stale(model);
    within(6);
    for (size_t tries = below(4); tries > 0; --tries) {
      const MSDelegateKernel kernel{nullptr, below(9) ? run_kernel : nullptr, below(2) ? nullptr : freed};
      TRY(MSDelegateModelReplace(model, below(count + 2), below(9) ? 1 + below(3) : SIZE_MAX - below(2), below(9) ? &kernel : nullptr, below(2) ? "taken" : nullptr));
    }
    MSDelegateModelDecline(model, below(count + 2), below(2) ? "no" : nullptr);
    MSDelegateModelIsTaken(model, below(count + 2));
    if (!below(25)) throw std::runtime_error("of a delegate");
    return below(20) ? kMSStatusSuccess : static_cast<MSStatus>(one({-1, 77, 1 << 30}));
  }
  // A registered operator, with types and shapes that cannot be, too.
  static MSStatus infer(void*, const MSDelegateNode* node, MSDataType* types, MSShapeInfo* shapes, size_t output_num) {
    static thread_local Caller own(17);
    own.stale(node);
    for (size_t i = 0; i < output_num; ++i) {
      const std::vector<int64_t> sizes = own.shape();
      types[i] = own.type();
      shapes[i].shape_num = own.below(9) ? sizes.size() : own.random_();
      std::copy(sizes.begin(), sizes.end(), shapes[i].shape);
    }
    if (!own.below(9)) throw 3;
    return own.below(9) ? kMSStatusSuccess : static_cast<MSStatus>(own.one({-1, 5}));
  }
  static MSStatus create(void*, const MSDelegateNode* node, MSDelegateKernel* kernel) {
    static thread_local Caller own(19);
    own.stale(node);
    kernel->run = own.below(9) ? run_kernel : nullptr;
    if (!own.below(9)) throw 3;
    return own.below(9) ? kMSStatusSuccess : static_cast<MSStatus>(own.one({-1, 5}));
  }
  // A model or node that may be gone, or of the other kind.
  void stale(const void* what) {
    const auto* node = static_cast<const MSDelegateNode*>(what);
    size_t number = 0;
    int64_t values[2];
    sum_ += std::strlen(MSDelegateNodeGetName(node)) + std::strlen(MSDelegateNodeGetType(node)) + std::strlen(MSDelegateNodeGetCustomType(node));
    MSDelegateNodeGetCustomAttribute(node, below(3) ? "body" : nullptr, below(4) ? &number : nullptr);
    MSDelegateNodeGetInputs(node, below(4) ? &number : nullptr);
    MSDelegateNodeGetOutputs(node, below(4) ? &number : nullptr);
    const auto field = static_cast<uint16_t>(below(4) ? 4 + 2 * below(8) : below(65536));
    MSDelegateNodeGetInt(node, field, one<size_t>({1, 4, 8, 8, 3, 0}), -7);
    MSDelegateNodeGetFloat(node, field, 1);
    MSDelegateNodeGetInts(node, field, below(4) ? values : nullptr, below(3));
    const auto* model = static_cast<const MSDelegateModel*>(what);
    MSDelegateModelGetNode(model, MSDelegateModelGetNodeNum(model));
    MSDelegateModelDecline(const_cast<MSDelegateModel*>(model), 1, "x");
  }
  static MSStatus run_kernel(void*, const MSDelegateTensor* inputs, size_t input_num, MSDelegateTensor* outputs, size_t output_num) {
    static thread_local Caller own(13);
    return own.compute(inputs, input_num, outputs, output_num);
  }
  MSStatus compute(const MSDelegateTensor* inputs, size_t input_num, MSDelegateTensor* outputs, size_t output_num) {
    static const int64_t garbage[9] = {-1, INT64_MAX, 7, 0, 5, -3, 1, 1, 1};
    for (size_t i = 0; i < input_num; ++i)
      if (inputs[i].data_size) sum_ += static_cast<const unsigned char*>(inputs[i].data)[inputs[i].data_size - 1];
    for (size_t i = 0; i < output_num; ++i) std::memset(outputs[i].data, 0, outputs[i].data_size);
    within(8);
    if (output_num && !below(12)) outputs[0].shape = garbage, outputs[0].shape_num = below(10);
    if (output_num && !below(12)) outputs[below(output_num)].data = nullptr;
    if (output_num && !below(12)) outputs[0].data_size = SIZE_MAX, outputs[0].name = nullptr;
    if (!below(25)) throw std::runtime_error("of a kernel");
    if (!below(25)) throw "of a kernel";
    return below(12) ? kMSStatusSuccess : static_cast<MSStatus>(one({-1, 5, -303}));
  }

 private:
  std::mt19937_64 random_;
  int depth_ = 0;
  std::atomic<size_t> sum_{0};  // of what is read, so that it is read
};

std::vector<char> read(const std::string& path) {
  std::vector<char> content(1 << 22);
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (!file) fault("fopen", path);
  content.resize(std::fread(content.data(), 1, content.size(), file));
  std::fclose(file);
  return content;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return std::fprintf(stderr, "c_api_calls SEED CALLS THREADS FOLDER MODEL.ms...\n"), 2;
  const uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  const size_t calls = std::strtoull(argv[2], nullptr, 10), threads = std::strtoull(argv[3], nullptr, 10);
  world.alone = threads == 1;
  world.folder = argv[4];
  for (int i = 5; i < argc; ++i) world.files.push_back(argv[i]), world.contents.push_back(read(argv[i]));
  std::vector<std::thread> all;
  for (size_t t = 0; t < threads; ++t) all.emplace_back([=] { 
      Caller caller(seed * 1000 + t);
      for (size_t i = 0; i < calls; ++i) caller.step();
    });
  for (std::thread& thread : all) thread.join();
  for (const auto& handles : world.handles)  // of each kind: of another one they are refused
    for (void* h : handles) {
      for (auto* free : {MSModelDestroy, MSRunnerDestroy, MSContextDestroy, MSDeviceInfoDestroy, MSTensorDestroy}) {
        void* taken = h;
        free(&taken);
      }
    }
  std::printf("%zu %zu\n", world.well.load(), world.refused.load());
}
