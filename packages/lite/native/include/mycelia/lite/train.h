// Loops of training in C++, with callbacks: over the classes of model.h. Header only, C++17; programs link libmycelia_lite_train.
#ifndef MYCELIA_LITE_TRAIN_H_
#define MYCELIA_LITE_TRAIN_H_

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "mycelia/lite/model.h"

namespace mycelia {

// How far a training is; epochs and steps count from 0, steps within the epoch.
struct TrainCallBackData {
  Model* model_ = nullptr;
  int epoch_ = 0, step_ = 0;
  float loss_ = 0;  // of the last step
};

enum CallbackRetValue : int { kContinue = 0, kStopTraining = 1, kExit = 2 };

class TrainCallBack {
 public:
  virtual ~TrainCallBack() = default;
  virtual void Begin(const TrainCallBackData&) {}
  virtual void End(const TrainCallBackData&) {}
  virtual void EpochBegin(const TrainCallBackData&) {}
  virtual CallbackRetValue EpochEnd(const TrainCallBackData&) { return kContinue; }
  virtual void StepBegin(const TrainCallBackData&) {}
  virtual void StepEnd(const TrainCallBackData&) {}
};

// Prints the loss of every n-th step.
class LossMonitor : public TrainCallBack {
 public:
  explicit LossMonitor(int print_every_n_steps = 1) : every_(print_every_n_steps < 1 ? 1 : print_every_n_steps) {}
  void StepEnd(const TrainCallBackData& data) override {
    if ((data.step_ + 1) % every_ == 0) std::printf("epoch %d step %d loss %g\n", data.epoch_, data.step_, data.loss_);
  }

 private:
  const int every_;
};

// Sets `rate(present rate, epoch)` after every `step`-th epoch.
class LRScheduler : public TrainCallBack {
 public:
  using Rate = std::function<float(float rate, int epoch)>;
  explicit LRScheduler(Rate rate, int step = 1) : rate_(std::move(rate)), step_(step < 1 ? 1 : step) {}
  CallbackRetValue EpochEnd(const TrainCallBackData& data) override {
    if ((data.epoch_ + 1) % step_ != 0) return kContinue;
    return data.model_->SetLearningRate(rate_(data.model_->GetLearningRate(), data.epoch_)) ? kContinue : kStopTraining;
  }

 private:
  const Rate rate_;
  const int step_;
};

// Writes `prefix`_trained_epoch_N.ms, to go on training, after every n-th epoch; a file that cannot be written ends the training.
class CkptSaver : public TrainCallBack {
 public:
  CkptSaver(int save_every_n, std::string filename_prefix) : every_(save_every_n < 1 ? 1 : save_every_n), prefix_(std::move(filename_prefix)) {}
  CallbackRetValue EpochEnd(const TrainCallBackData& data) override {
    if ((data.epoch_ + 1) % every_ != 0) return kContinue;
    const std::string file = prefix_ + "_trained_epoch_" + std::to_string(data.epoch_) + ".ms";
    return Serialization::ExportModel(*data.model_, kMindIR_Lite, file, kNoQuant, false) ? kContinue : kStopTraining;
  }

 private:
  const int every_;
  const std::string prefix_;
};

// Fills the model's inputs for a step of an epoch; false: the epoch has no more.
using Batches = std::function<bool(int step, std::vector<MSTensor>& inputs)>;

// Steps over the batches, `epochs` times; the callbacks stay the caller's. The model is in the mode afterwards that it was in before.
inline Status Train(Model& model, int epochs, const Batches& batches, const std::vector<TrainCallBack*>& callbacks = {}) {
  const bool trained = model.GetTrainMode();
  if (Status status = model.SetTrainMode(true); !status) return status;
  TrainCallBackData data{&model};
  Status status;
  bool ends = false;
  for (TrainCallBack* callback : callbacks) callback->Begin(data);
  for (data.epoch_ = 0; data.epoch_ < epochs && status && !ends; ++data.epoch_) {
    for (TrainCallBack* callback : callbacks) callback->EpochBegin(data);
    std::vector<MSTensor> inputs = model.GetInputs();
    for (data.step_ = 0; batches(data.step_, inputs); ++data.step_) {
      for (TrainCallBack* callback : callbacks) callback->StepBegin(data);
      if (status = model.RunStep(); !status) break;
      const MSTensor loss = model.GetOutputs()[0];
      data.loss_ = *static_cast<const float*>(loss.Data().get());
      for (TrainCallBack* callback : callbacks) callback->StepEnd(data);
    }
    if (!status) break;
    for (TrainCallBack* callback : callbacks) ends = callback->EpochEnd(data) != kContinue || ends;
    if (Status back = model.SetTrainMode(true); !back) status = back;  // a callback may have let it answer
  }
  for (TrainCallBack* callback : callbacks) callback->End(data);
  if (Status back = model.SetTrainMode(trained); status && !back) return back;
  return status;
}

}  // namespace mycelia

#endif
