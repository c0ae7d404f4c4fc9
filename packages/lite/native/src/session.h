// A model that runs: its file, its inputs and outputs, and how it is executed.
#ifndef MYCELIA_LITE_SESSION_H_
#define MYCELIA_LITE_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "execution.h"
#include "model_bytes.h"
#include "model_file.h"

namespace mycelia::lite {

// An input or output as callers see it.
struct Border {
  std::string name;
  Type type;
  Memory memory;
};

class Session {
 public:
  Status open_file(const std::string& path);
  Status open_bytes(const void* data, size_t size);
  // A plain model in memory of its own; its weights may lie in files of `folder`.
  Status open_memory(Memory memory, size_t size, const std::string& folder);
  void set_threads(int threads) { execution_.set_threads(threads); }

  std::vector<Border>& inputs() { return inputs_; }
  std::vector<Border>& outputs() { return outputs_; }

  // Plans for other input shapes; after a failure the model is as it was. An output whose shape depends on data has the
  // size -1 until the model ran.
  Status resize(const std::vector<std::vector<int64_t>>& shapes);
  // Computes the outputs from what the inputs' memory holds.
  Status predict();
  bool ready() const { return stage_ != nullptr; }

 private:
  Status load();

  ModelBytes bytes_;
  ModelFile file_;
  Execution execution_{file_};
  std::shared_ptr<Stage> stage_;  // the first one for the present shapes
  std::vector<Border> inputs_, outputs_;
};

}  // namespace mycelia::lite

#endif
