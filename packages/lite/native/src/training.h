// A model that learns: steps of its training, answers, and files of what it learned.
#ifndef MYCELIA_LITE_TRAINING_H_
#define MYCELIA_LITE_TRAINING_H_

#include <memory>
#include <string>
#include <vector>

#include "session.h"

namespace mycelia::lite {

// Abstract, so that a library for inference alone links none of it.
class Training {
 public:
  // `step`: the session of the file, a step of the training; it must live as long. Null for a file that is not for training.
  static std::unique_ptr<Training> of(Session& step, const Options& options);
  virtual ~Training() = default;

  // Whether runs are steps of the training; at first they are answers. Errors: kNotSupported: the file has no answers.
  virtual Status set_trains(bool trains) = 0;
  virtual bool trains() const = 0;
  // Whose outputs a run makes.
  virtual Session& active() = 0;
  // A step, or an answer to what the step's inputs hold.
  virtual Status run(Observer* observer = nullptr, NodeTimes* times = nullptr) = 0;

  // What the model learns, by variable; the memory is the variables' own.
  virtual const std::vector<std::shared_ptr<Border>>& weights() const = 0;
  virtual std::vector<size_t> variables_of(std::initializer_list<FileState::Role> roles) const = 0;
  // Other elements for variables, by name; all or none.
  virtual Status set_variables(const std::vector<const Border*>& given) = 0;

  // Errors: kNotSupported: the rate follows a schedule that is part of the model.
  virtual Status set_rate(float rate) = 0;
  virtual Status rate(float* rate) const = 0;

  // Gradients of `count` small steps are added before the optimizer's step, whose rate is `rate`, below 0: the present one divided by
  // `count`; `momentum`: below 0: the present one. A count of 1 ends that, and brings back the rate and momentum from before.
  virtual Status set_virtual_batch(int count, float rate, float momentum) = 0;
  // What the optimizer gets, from the next step on kept.
  virtual Status gradients(std::vector<Border*>* found) = 0;
  // The optimizer's step with these gradients, all by name.
  virtual Status apply(const std::vector<const Border*>& gradients) = 0;

  // The file with what the variables hold now; with `answers` one for inference alone.
  virtual Status write(bool answers, std::string* bytes) const = 0;
  virtual Status save(bool answers, const std::string& path) const = 0;
};

// Writes a file so that whoever opens the path finds the one from before or this one, whole.
Status write_whole(const std::string& path, const std::string& bytes);

}  // namespace mycelia::lite

#endif
