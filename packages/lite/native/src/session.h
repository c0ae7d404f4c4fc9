// A model that runs: its file, its inputs and outputs, and how it is executed.
#ifndef MYCELIA_LITE_SESSION_H_
#define MYCELIA_LITE_SESSION_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "execution.h"
#include "model_bytes.h"
#include "model_file.h"
#include "options.h"
#include "threads.h"

namespace mycelia::lite {

class Session;

// A mutex of a tensor; a copy of the tensor has one of its own.
struct Guard : std::mutex {
  Guard() = default;
  Guard(const Guard&) {}
  Guard& operator=(const Guard&) { return *this; }
};

// A tensor as callers see it: an input or output of a model, one that a caller made, or one inside of a model.
struct Border {
  std::string name;
  Type type;
  Memory memory;
  uint8_t* data = nullptr;  // its memory, or that of a caller or of a model
  int32_t format = 0;  // MindSpore's number
  std::shared_ptr<const Scales> meaning;  // of integers that stand for other numbers
  bool reference = false;  // made without memory of its own
  bool made = true;  // has elements that can be read: an output has none before its model ran
  bool of_model = false;  // name, type and shape are the model's
  Session* session = nullptr;  // whose input or output it is
  // Held by who changes the tensor, or reads it without having its session alone.
  mutable Guard guard;
};

// What a model keeps from run to run; `next` has memory if a run needs it.
struct Variable {
  Type type;
  Memory now, next;
};
using Variables = std::vector<Variable>;

class Session {
 public:
  explicit Session(std::shared_ptr<Workspace> workspace = std::make_shared<Workspace>()) : workspace_(std::move(workspace)) {}
  // Of another subgraph of the file that `other` has opened, one that is a whole of its own, on the same variables; both run one at a time.
  Session(const Session& other, int graph)
      : threads_(other.threads_), workspace_(other.workspace_), graph_(graph), variables_(other.variables_) {
    workspace_->share();
  }
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  // `source` was read. Errors: those of its plan and of the options.
  Status open(std::shared_ptr<Source> source, const Options& options);
  const std::shared_ptr<Source>& source() const { return source_; }
  const std::shared_ptr<Workspace>& workspace() const { return workspace_; }
  Variables& variables() { return *variables_; }

  std::vector<Border>& inputs() { return inputs_; }
  std::vector<Border>& outputs() { return outputs_; }

  // Copies the elements of `given` to input i.  Errors: kInputTensorWrong: another type, or no elements.
  Status copy_input(size_t i, const Border& given);
  // Plans for other input shapes; after a failure the model is as it was. An output whose shape depends on data has the
  // size -1 until the model ran.
  Status resize(const std::vector<std::vector<int64_t>>& shapes);
  // Computes the outputs from what the inputs' memory holds; `observer` may be null.
  // `times`: of the nodes, added to what they have.
  Status predict(Observer* observer = nullptr, NodeTimes* times = nullptr);
  bool ready() const { return stage_ != nullptr; }
  // After an input or output got other memory: the next run finds it.
  void rebind() { rebound_ = true; }
  // What a node computes, from the next run on; null if there is no such node. It belongs to the session.
  const std::vector<std::unique_ptr<Border>>* keep(const std::string& node);
  // Other elements for constants, by name, with the types that they have; after a failure the model is as it was.
  Status update_weights(const std::vector<const Border*>& weights);
  // One call at a time: false while another has it.
  bool enter() { return !running_.exchange(true, std::memory_order_acquire); }
  void leave() { running_.store(false, std::memory_order_release); }
  // A plan for the present shapes, for other processors. Errors: kInferLater: open sizes.
  Status plan_portably(Packs* packs, Pool* pool, Plan* made);
  const Plan* plan() const { return stage_ ? &stage_->plan : nullptr; }

 private:
  class Recorder;

  void set_lanes();
  // New plans, as the constants are other ones.
  Status replan();
  Status bind(const std::shared_ptr<Stage>& stage);
  // Fails unless there is room for inputs, outputs and arena together: the message names the largest.
  Status check_room(const std::vector<Type>& inputs, const Plan& plan) const;
  // Fails unless what a run leaves in variables has their types.
  Status check_states(const Plan& plan) const;
  Status open_variables();
  void add_variables(std::vector<Type>* types) const;
  void add_variables(std::vector<Execution::Argument>* arguments) const;
  // Where a run puts an output: memory of the model's output, or of a variable; null if there is none.
  uint8_t* place_of(const Plan& plan, size_t output);
  void keep_variables(const Plan& plan);

  std::atomic<bool> running_{false};
  std::shared_ptr<Source> source_;
  std::shared_ptr<Threads> threads_;  // null before it is opened
  int lanes_ = 1;
  decltype(Options::lanes_for) lanes_for_ = nullptr;
  std::vector<std::shared_ptr<Delegate>> delegates_;
  bool fast_ = false;  // large products may round worse
  const std::shared_ptr<Workspace> workspace_;
  std::unique_ptr<Execution> execution_;
  std::shared_ptr<Stage> stage_;  // the first one for the present shapes
  bool rebound_ = false;  // an input or output has other memory than its stage was bound to
  std::vector<Border> inputs_, outputs_;
  const int graph_ = 0;
  std::shared_ptr<Variables> variables_;  // null before it is opened
  std::vector<size_t> reads_, sets_;  // which of them are inputs and outputs behind those of the model
  std::map<int, std::vector<std::unique_ptr<Border>>> kept_;  // outputs of nodes of the file
};

}  // namespace mycelia::lite

#endif
