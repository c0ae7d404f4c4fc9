#include "runner.h"

#include <cstring>
#include <utility>

namespace mycelia::lite {

namespace {

std::shared_ptr<Border> description(const Border& border) {
  auto made = std::make_shared<Border>();
  made->name = border.name;
  made->type = border.type;
  made->format = border.format;
  made->meaning = border.meaning;
  made->made = false;
  made->of_model = true;
  return made;
}

}  // namespace

Status Runner::init(std::shared_ptr<Source> source, const Options& options, size_t workers) {
  if (!workers_.empty()) return {kParameterInvalid, "the runner is initialized already"};
  if (source->file.training.there) return {kNotSupported, "a model that learns has one user: export it for inference"};
  std::vector<std::unique_ptr<Session>> made;
  for (size_t i = 0; i < workers; ++i) {
    if (Status status = made.emplace_back(std::make_unique<Session>())->open(source, options); !status) return status;
  }
  workers_ = std::move(made);
  for (const auto& worker : workers_) free_.push_back(worker.get());
  for (const Border& input : workers_[0]->inputs()) inputs_.push_back(description(input));
  for (const Border& output : workers_[0]->outputs()) outputs_.push_back(description(output));
  return {};
}

Status Runner::predict(const std::vector<std::shared_ptr<Border>>& inputs, std::vector<std::shared_ptr<Border>>* outputs) {
  if (workers_.empty()) return {kParameterInvalid, "the runner is not initialized"};
  thread_local const Runner* busy = nullptr;  // the runner that this thread predicts on
  if (busy == this) return {kReentered, "a delegate that runs for the runner cannot call it: all workers may be waiting for that"};
  Session* worker;
  {
    std::unique_lock<std::mutex> lock(guard_);
    freed_.wait(lock, [&] { return !free_.empty(); });
    worker = free_.back();
    free_.pop_back();
  }
  struct GiveBack {
    Runner& runner;
    Session* worker;
    const Runner* const outer = std::exchange(busy, &runner);
    ~GiveBack() {
      busy = outer;
      {
        const std::lock_guard<std::mutex> lock(runner.guard_);
        runner.free_.push_back(worker);
      }
      runner.freed_.notify_one();
    }
  } give_back{*this, worker};
  return run(*worker, inputs, outputs);
}

Status Runner::run(Session& worker, const std::vector<std::shared_ptr<Border>>& inputs, std::vector<std::shared_ptr<Border>>* outputs) {
  std::vector<Border>& own = worker.inputs();
  if (inputs.size() != own.size())
    return {kInputTensorWrong, std::to_string(inputs.size()) + " inputs were given, the model has " + std::to_string(own.size())};
  bool fits = worker.ready();
  std::vector<std::vector<int64_t>> shapes;
  for (size_t i = 0; i < own.size(); ++i) {
    const Border* given = inputs[i].get();
    if (!given) return {kInputTensorWrong, "the tensor for input '" + own[i].name + "' is NULL or was freed"};
    const std::lock_guard<std::mutex> lock(given->guard);
    if (!given->data || !given->made) return {kInputTensorWrong, "the tensor for input '" + own[i].name + "' has no elements"};
    if (given->type.dtype != own[i].type.dtype)
      return {kInputTensorWrong, "input '" + own[i].name + "' must be " + text_of(own[i].type) + ", but is " + text_of(given->type)};
    fits = fits && given->type.shape == own[i].type.shape;
    shapes.push_back(given->type.shape);
  }
  for (size_t i = 0; i < own.size() && !fits; ++i) {  // only what the file leaves open may differ
    const std::vector<int64_t>& declared = inputs_[i]->type.shape;
    bool same = declared.size() == shapes[i].size();
    for (size_t d = 0; same && d < declared.size(); ++d) same = declared[d] < 0 || declared[d] == shapes[i][d];
    if (!same)
      return {kInputTensorWrong, "input '" + own[i].name + "' must be " + text_of(inputs_[i]->type) + ", but is " + text_of({own[i].type.dtype, shapes[i]})};
  }
  if (!fits)
    if (Status status = worker.resize(shapes); !status) return status;
  for (size_t i = 0; i < own.size(); ++i)
    if (Status status = worker.copy_input(i, *inputs[i]); !status) return status;
  if (Status status = worker.predict(); !status) return status;
  for (const Border& output : worker.outputs()) {
    auto copy = std::make_shared<Border>();
    copy->name = output.name;
    copy->type = output.type;
    copy->format = output.format;
    copy->meaning = output.meaning;
    copy->memory = Memory(output.memory.size());
    copy->data = copy->memory.data();
    if (!copy->data) return {kMemory, "no memory for output '" + output.name + "'"};
    std::memcpy(copy->data, output.data, output.memory.size());
    outputs->push_back(std::move(copy));
  }
  return {};
}

}  // namespace mycelia::lite
