// Models that share threads, weights and memory, used by several threads at once: `shared_models SEED ROUNDS MODEL.ms...`
//
// Each model answers alone first. Then threads build models on the pool that all share and on pools of their own, from a file or from
// another model, some with one workspace; they predict, resize to and fro, watch, time, and go while others run; clients of a runner
// ask at the same time. Each answer must have the bits of the first one. Run it with the thread sanitizer (see README.md); the last
// line has how many answers were compared.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "mycelia/lite/model.h"

using namespace mycelia;

namespace {

constexpr int kThreads = 4;

struct Case {
  std::string path;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::vector<char>> inputs, answers;
};
std::vector<Case> cases;
std::atomic<size_t> compared{0};

void require(bool fine, const char* what) {
  if (fine) return;
  std::printf("%s: %s\n", what, MSGetLastError());
  std::fflush(stdout);
  std::_Exit(1);
}

std::shared_ptr<Context> context(int threads, bool shared, int lanes) {
  auto made = std::make_shared<Context>();
  made->SetThreadNum(threads);
  require(made->SetSharedThreadPool(shared).IsOk(), "shared pool");
  if (lanes > 1) made->SetInterOpParallelNum(lanes);
  return made;
}

void fill(std::vector<MSTensor> inputs, const Case& c) {
  for (size_t i = 0; i < inputs.size(); ++i) std::memcpy(inputs[i].MutableData(), c.inputs[i].data(), c.inputs[i].size());
}

void compare(const std::vector<MSTensor>& outputs, const Case& c) {
  require(outputs.size() == c.answers.size(), "outputs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    require(outputs[i].DataSize() == c.answers[i].size(), "size of an answer");
    require(!std::memcmp(MSTensorGetData(outputs[i].handle()), c.answers[i].data(), c.answers[i].size()), "bits of an answer");
    ++compared;
  }
}

void prepare(Case& c, std::mt19937_64& random) {
  Model model;
  require(model.Build(c.path, kMindIR_Lite, context(1, false, 1)).IsOk(), "build");
  for (MSTensor& input : model.GetInputs()) {
    std::vector<int64_t> shape = input.Shape();
    for (int64_t& n : shape) n = n < 0 ? 2 : n;
    c.shapes.push_back(shape);
  }
  require(model.Resize(model.GetInputs(), c.shapes).IsOk(), "resize");
  for (MSTensor& input : model.GetInputs()) {
    std::vector<char> bytes(input.DataSize());
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      const float number = static_cast<float>(random() % 2000) / 1000 - 1;
      std::memcpy(&bytes[i], &number, 4);
    }
    c.inputs.push_back(bytes);
  }
  fill(model.GetInputs(), c);
  require(model.Predict().IsOk(), "predict");
  for (MSTensor& output : model.GetOutputs()) {
    const char* data = static_cast<const char*>(MSTensorGetData(output.handle()));
    c.answers.emplace_back(data, data + output.DataSize());
  }
}

// What one thread does with models of its own; `parent` is shared by all.
void work(uint64_t seed, int rounds, Model* parent, const Case& of_parent) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < rounds; ++round) {
    const bool of_file = below(2) == 0;
    const Case& c = of_file ? cases[random() % cases.size()] : of_parent;
    const auto how = context(1 + below(3), below(3) != 0, below(3) ? 1 : 2);
    Model model, beside;
    if (of_file) require(model.Build(c.path, kMindIR_Lite, how).IsOk(), "build");
    else require(model.Build(*parent, how).IsOk(), "build from another model");
    const bool two = below(3) == 0;
    if (two) {
      require(beside.ShareWorkspace(model).IsOk(), "share a workspace");
      require(beside.Build(c.path, kMindIR_Lite, how).IsOk(), "build beside");
      require(beside.Resize(beside.GetInputs(), c.shapes).IsOk(), "resize beside");
    }
    for (int run = 0; run < 6; ++run) {
      require(model.Resize(model.GetInputs(), c.shapes).IsOk(), "resize");
      fill(model.GetInputs(), c);
      size_t seen = 0;
      const MSKernelCallBack watch = [&](const std::vector<MSTensor>&, const std::vector<MSTensor>&, const MSCallBackParam&) { return ++seen > 0; };
      require((below(4) ? model.Predict() : model.Predict(nullptr, watch)).IsOk(), "predict");
      compare(model.GetOutputs(), c);
      if (!two) continue;
      std::thread other([&] {  // waits for the workspace, or has it first
        fill(beside.GetInputs(), c);
        require(beside.Predict().IsOk(), "predict beside");
        compare(beside.GetOutputs(), c);
      });
      fill(model.GetInputs(), c);
      require(model.Predict().IsOk(), "predict");
      other.join();
      compare(model.GetOutputs(), c);
    }
  }
}

void ask(ModelParallelRunner* runner, const Case& c, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<MSTensor> inputs, outputs;
    const std::vector<MSTensor> described = runner->GetInputs();
    for (size_t i = 0; i < c.inputs.size(); ++i)
      inputs.push_back(MSTensor::CreateTensor(described[i].Name(), described[i].DataType(), c.shapes[i], c.inputs[i].data(), c.inputs[i].size()));
    require(runner->Predict(inputs, &outputs).IsOk(), "runner");
    compare(outputs, c);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  const int rounds = std::atoi(argv[2]);
  std::mt19937_64 random(seed);
  for (int i = 3; i < argc; ++i) cases.push_back({argv[i], {}, {}, {}});
  for (Case& c : cases) prepare(c, random);

  Model parent;
  require(parent.Build(cases[0].path, kMindIR_Lite, context(2, true, 1)).IsOk(), "build");
  const auto config = std::make_shared<RunnerConfig>();
  config->SetWorkersNum(2);
  config->SetContext(context(2, true, 1));
  ModelParallelRunner runner;
  require(runner.Init(cases[0].path, config).IsOk(), "runner");
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back(work, random(), rounds, &parent, std::cref(cases[0]));
    threads.emplace_back(ask, &runner, std::cref(cases[0]), 6 * rounds);
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%zu\n", compared.load());
}
