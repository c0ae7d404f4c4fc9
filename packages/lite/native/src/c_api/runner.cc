// Runners: one model for many threads.
#include "../runner.h"
#include "border.h"

using namespace mycelia::lite;

namespace {

struct RunnerObject {
  std::mutex building;
  Config config;
  Runner runner;
  Handles inputs, outputs;
  bool ready = false;
};

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
    const std::lock_guard<std::mutex> lock(runner->building);
    return runner->config[section][key] = value, Status();
  });
}

MSStatus MSRunnerInit(MSRunnerHandle handle, const char* model_path, MSContextHandle context, int32_t workers_num) {
  const auto runner = find<RunnerObject>(handle);
  const auto options = find<Options>(context);
  if (!runner || !model_path) return refused(kNullPointer, "the runner or model_path is NULL, or the runner was freed");
  if (context && !options) return refused(kNullPointer, "the context was freed");
  if (workers_num < 1) return refused(kParameterInvalid, "workers_num must be at least 1, but got " + std::to_string(workers_num));
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(runner->building);
    if (runner->ready) return Status(kParameterInvalid, "the runner is initialized already: create another one");
    std::shared_ptr<Source> source;
    if (Status status = read_source(model_path, &source); !status) return status;
    Options chosen = options ? *options : Options();
    for (const auto& [section, keys] : runner->config)
      for (const auto& [key, value] : keys) chosen.config[section][key] = value;
    if (Status status = check_plan(*source, chosen, nullptr); !status) return status;
    if (Status status = runner->runner.init(std::move(source), chosen, static_cast<size_t>(workers_num)); !status) return status;
    for (const auto& input : runner->runner.inputs()) runner->inputs.add(input);
    for (const auto& output : runner->runner.outputs()) runner->outputs.add(output);
    runner->ready = true;
    return Status();
  });
}

MSTensorHandleArray MSRunnerGetInputs(MSRunnerHandle handle) {
  const auto runner = find<RunnerObject>(handle);
  return runner ? runner->inputs.array() : MSTensorHandleArray{0, nullptr};
}
MSTensorHandleArray MSRunnerGetOutputs(MSRunnerHandle handle) {
  const auto runner = find<RunnerObject>(handle);
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
