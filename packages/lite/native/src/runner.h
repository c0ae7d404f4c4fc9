// One model for many threads: workers that share its file, weights and packed constants.
#ifndef MYCELIA_LITE_RUNNER_H_
#define MYCELIA_LITE_RUNNER_H_

#include <condition_variable>

#include "session.h"

namespace mycelia::lite {

class Runner {
 public:
  // Errors: those of `Session::open`.
  Status init(std::shared_ptr<Source> source, const Options& options, size_t workers);
  // Runs on a worker that is free, or waits for one; inputs of another shape resize it. Called by any thread.
  Status predict(const std::vector<std::shared_ptr<Border>>& inputs, std::vector<std::shared_ptr<Border>>* outputs);
  // Descriptions of the inputs and outputs as the file has them, without elements.
  const std::vector<std::shared_ptr<Border>>& inputs() const { return inputs_; }
  const std::vector<std::shared_ptr<Border>>& outputs() const { return outputs_; }
  size_t workers() const { return workers_.size(); }

 private:
  Status run(Session& worker, const std::vector<std::shared_ptr<Border>>& inputs, std::vector<std::shared_ptr<Border>>* outputs);

  std::vector<std::unique_ptr<Session>> workers_;
  std::vector<std::shared_ptr<Border>> inputs_, outputs_;
  std::mutex guard_;
  std::condition_variable freed_;
  std::vector<Session*> free_;
};

}  // namespace mycelia::lite

#endif
