// A model that runs: its file, the plan for its present shapes, and the memory.
#ifndef MYCELIA_LITE_SESSION_H_
#define MYCELIA_LITE_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "model_bytes.h"
#include "model_file.h"
#include "plan.h"

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
  void set_threads(int threads) { threads_ = threads; }

  std::vector<Border>& inputs() { return inputs_; }
  std::vector<Border>& outputs() { return outputs_; }

  // Plans for other input shapes; after a failure the model is as it was.
  Status resize(const std::vector<std::vector<int64_t>>& shapes);
  // Computes the outputs from what the inputs' memory holds.
  Status predict();
  bool ready() const { return plan_ != nullptr; }

 private:
  Status load();
  void bind();

  ModelBytes bytes_;
  ModelFile file_;
  Packs packs_;
  std::unique_ptr<Plan> plan_;
  Memory arena_;
  std::vector<Border> inputs_, outputs_;
  std::vector<myc_tensor> tensors_;  // of all values of the plan
  std::vector<const myc_tensor*> step_inputs_;  // of all steps, one after the other
  std::vector<myc_tensor*> step_outputs_;
  int threads_ = 1;
};

}  // namespace mycelia::lite

#endif
