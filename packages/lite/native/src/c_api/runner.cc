// Runners: one model for many threads.
#include "../runner.h"
#include "border.h"

using namespace mycelia::lite;

namespace {

struct RunnerObject {
  std::atomic<bool> building{false};
  std::mutex settings;  // held by who reads or changes the configuration
  std::shared_ptr<Config> config;  // null: none
  std::atomic<bool> ready{false};  // then these stay as they are
  Runner runner;
  Handles inputs, outputs;
};

constexpr int32_t kMostWorkers = 1024;

// The runner, if it is initialized.
std::shared_ptr<RunnerObject> ready_runner(MSRunnerHandle handle) {
  auto runner = find<RunnerObject>(handle);
  if (!runner) return refused(kNullPointer, "the runner is NULL or was freed"), nullptr;
  if (!runner->ready) return refused(kParameterInvalid, "the runner is not initialized"), nullptr;
  return runner;
}

}  // namespace

MSRunnerHandle MSRunnerCreate(void) {
  void* made = nullptr;
  guarded([&] { return made = publish(std::make_shared<RunnerObject>()), Status(); });
  return made;
}
void MSRunnerDestroy(MSRunnerHandle* runner) {
  if (!runner) return;
  withdraw<RunnerObject>(*runner);  // it lives until the last prediction on it has ended
  *runner = nullptr;
}

MSStatus MSRunnerUpdateConfig(MSRunnerHandle handle, const char* section, const char* key, const char* value) {
  const auto runner = find<RunnerObject>(handle);
  if (!runner || !section || !key || !value) return refused(kNullPointer, "the runner, section, key or value is NULL, or the runner was freed");
  return guarded([&] {
    if (Status status = check_config(section, key, value); !status) return status;
    const std::lock_guard<std::mutex> lock(runner->settings);
    if (runner->building || runner->ready) return Status(kParameterInvalid, "the runner is initialized already: a configuration comes before");
    return set_config(&runner->config, section, key, value), Status();
  });
}

MSStatus MSRunnerInit(MSRunnerHandle handle, const char* model_path, MSContextHandle context, int32_t workers_num) {
  const auto runner = find<RunnerObject>(handle);
  if (!runner || !model_path) return refused(kNullPointer, "the runner or model_path is NULL, or the runner was freed");
  if (workers_num < 1 || workers_num > kMostWorkers)
    return refused(kParameterInvalid, "workers_num must be 1 to " + std::to_string(kMostWorkers) + ", but got " + std::to_string(workers_num));
  return guarded([&] {
    const Turn turn(runner->building);
    if (!turn) return Status(kReentered, "the runner is just being initialized");
    if (runner->ready) return Status(kParameterInvalid, "the runner is initialized already: create another one");
    std::shared_ptr<const Config> config;
    {
      const std::lock_guard<std::mutex> lock(runner->settings);
      config = runner->config;
    }
    Options chosen;
    if (Status status = options_of(context, config, &chosen); !status) return status;
    std::shared_ptr<Source> source;
    if (Status status = read_source(model_path, &source); !status) return status;
    if (Status status = check_plan(*source, chosen, nullptr); !status) return status;
    if (Status status = runner->runner.init(std::move(source), chosen, static_cast<size_t>(workers_num)); !status) return status;
    for (const auto& input : runner->runner.inputs()) runner->inputs.add(input);
    for (const auto& output : runner->runner.outputs()) runner->outputs.add(output);
    runner->ready = true;
    return Status();
  });
}

MSTensorHandleArray MSRunnerGetInputs(MSRunnerHandle handle) {
  const auto runner = ready_runner(handle);
  return runner ? runner->inputs.array() : MSTensorHandleArray{0, nullptr};
}
MSTensorHandleArray MSRunnerGetOutputs(MSRunnerHandle handle) {
  const auto runner = ready_runner(handle);
  return runner ? runner->outputs.array() : MSTensorHandleArray{0, nullptr};
}

MSStatus MSRunnerPredict(MSRunnerHandle handle, MSTensorHandleArray inputs, MSTensorHandle* outputs, size_t* output_num) {
  const auto runner = find<RunnerObject>(handle);
  if (!runner || !outputs || !output_num || (inputs.handle_num && !inputs.handle_list))
    return refused(kNullPointer, "the runner, its inputs, outputs or output_num is NULL, or the runner was freed");
  if (!runner->ready) return refused(kParameterInvalid, "the runner is not initialized");
  return guarded([&] {
    std::vector<std::shared_ptr<Border>> given, made;
    for (size_t i = 0; i < inputs.handle_num; ++i) given.push_back(find<Border>(inputs.handle_list[i]));
    const size_t count = runner->outputs.all().size();
    if (*output_num < count) return Status(kParameterInvalid, "the model has " + std::to_string(count) + " outputs, but there are places for " + std::to_string(*output_num));
    if (Status status = runner->runner.predict(given, &made); !status) return status;
    for (size_t i = 0; i < made.size(); ++i) outputs[i] = publish(std::move(made[i]));
    *output_num = count;
    return Status();
  });
}
