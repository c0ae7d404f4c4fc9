// How a model runs: stage after stage, each with a plan that is kept for runs alike.
#ifndef MYCELIA_LITE_EXECUTION_H_
#define MYCELIA_LITE_EXECUTION_H_

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lanes.h"
#include "plan.h"
#include "workspace.h"

namespace mycelia::lite {

// A plan with the addresses of its values.
struct Stage {
  Plan plan;
  uint64_t number = 0;
  std::shared_ptr<Stage> before;  // whose constants the plan may use
  std::vector<myc_tensor> tensors;  // of all values
  std::vector<const myc_tensor*> step_inputs;  // of all steps, one after the other
  std::vector<myc_tensor*> step_outputs;
  std::vector<std::pair<size_t, size_t>> step_places;  // of each step in these two
  Order order;  // of a parallel plan
  bool active = false;  // it is under way: a subgraph that calls itself needs another one
};

// What is told of each node of a run.
class Observer {
 public:
  virtual ~Observer() = default;
  // `tensor(v)` describes the value v; what it points to holds for the call. False ends the run.
  using Describe = std::function<const myc_tensor*(int)>;
  virtual bool before(const FileNode& node, const NodeRun& run, const Describe& tensor) = 0;
  virtual bool after(const FileNode& node, const NodeRun& run, const Describe& tensor) = 0;
};

// What the nodes of a file took; of steps that are done together, it is told of the last one's node.
struct NodeTimes {
  std::vector<double> milliseconds;
  std::vector<size_t> calls;
};

// What models made of one file share: the workers of a runner, the models of a group.
struct Source {
  ModelBytes bytes;
  ModelFile file;
  Packs packs;
  Pool pool;  // of packed weights
  bool sealed = false;  // the bytes were encrypted: they are not written anywhere as they are
  std::map<size_t, Memory> updated;  // constants of the file that were replaced
  std::mutex planning;  // held by who reads attributes or changes packs, through `Planning`
  std::atomic<std::thread::id> planner{};  // who holds it
  std::mutex sharing;  // held for what follows
  int sessions = 0;
  bool updating = false;  // constants are being replaced: no further session
};

// Holds `planning`, unless the thread has it already: a delegate that is asked for its nodes may use models of the same file.
class Planning {
 public:
  explicit Planning(Source& source) : source_(source), held_(source.planner.load() != std::this_thread::get_id()) {
    if (!held_) return;
    source_.planning.lock();
    source_.planner = std::this_thread::get_id();
  }
  ~Planning() {
    if (!held_) return;
    source_.planner = std::thread::id();
    source_.planning.unlock();
  }
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;
  explicit operator bool() const { return held_; }

 private:
  Source& source_;
  const bool held_;
};
inline Status planned_already() { return {kReentered, "the model's file is just being planned by this thread: a delegate's build cannot use it"}; }

// A tensor with memory of its own, between subgraphs.
struct Buffer {
  Type type;
  Memory memory;
};

inline size_t bytes_of(const Type& type) { return static_cast<size_t>(element_count(type.shape) * item_bytes(type.dtype)); }
Status no_memory();
std::string node_text(const FileNode& node);

class Execution {
 public:
  // Where the i-th output of a graph goes; null if there is no memory.
  using Sink = std::function<uint8_t*(int, const Type&)>;
  struct Argument {
    Type type;
    const uint8_t* data;
  };

  // Runs the first subgraph, or another one that is a whole of its own (FileTraining).
  Execution(Source& source, Workspace& workspace, int graph = 0) : file_(source.file), source_(source), workspace_(workspace), graph_(graph) {}

  // The first stage of the model for inputs of these types; kept for a while.
  Status prepare(const std::vector<Type>& types, std::shared_ptr<Stage>* stage);
  // Addresses for `stage`, which is to run next on the model's inputs.
  Status bind(const std::shared_ptr<Stage>& stage, const std::vector<Argument>& inputs, const Sink& sink);
  // Whether the addresses of `stage` are still those that `bind` gave it: a run may bind it anew, or move the first arena.
  bool is_bound(const Stage& stage) const { return bound_ == stage.number && moves_ == workspace_.moves(); }
  // Steps that run at the same time, on threads that stay the caller's; before the first plan.
  void set_lanes(std::unique_ptr<Parallel> lanes) { lanes_ = std::move(lanes); }
  void set_delegates(const std::vector<std::shared_ptr<Delegate>>& delegates) { delegates_ = delegates; }
  // Whether plans may have large products round worse; before the first plan.
  void set_fast(bool fast) { fast_ = fast; }
  // Whether plans from now on keep nodes apart, so that an observer can be told of each.
  void watch(bool watched) { watched_ = watched; }
  // Runs the model, whose first stage is bound. `observer`, of a watched plan, and `times` may be null.
  Status run(const std::shared_ptr<Stage>& first, const Sink& sink, Observer* observer = nullptr, NodeTimes* times = nullptr);

 private:
  using Results = std::vector<std::vector<Buffer>>;  // of the activations of a stage

  Status find(const std::string& key, const std::function<Status(Stage*)>& make, std::shared_ptr<Stage>* stage);
  Status first_stage(int graph, const std::vector<Type>& types, std::shared_ptr<Stage>* stage);
  Status next_stage(const std::shared_ptr<Stage>& before, const Results& results, std::shared_ptr<Stage>* stage);
  Status bind(Stage& stage, size_t level, const std::vector<Argument>& inputs, const Results& results, const Sink& sink);
  Status run_steps(const Stage& stage);
  Status run_observed(const Stage& stage);
  Status run_steps(const Stage& stage, int first, int last, myc_context* context);
  Status run_lanes(const Stage& stage);
  Status run_step(const Stage& stage, int s, myc_context* context);
  // From a bound stage at this level of the arenas to the end of its graph.
  Status finish(std::shared_ptr<Stage> stage, size_t level, int depth, const Sink& sink);
  Status run_stages(std::shared_ptr<Stage> stage, size_t level, int depth, const Sink& sink);  // control.cc
  Status activate(const Activation& activation, const Stage& stage, size_t level, int depth, std::vector<Buffer>* results);
  Status call(int graph, const std::vector<Argument>& arguments, size_t level, int depth, std::vector<Buffer>* results);
  Status loop(const Activation& activation, std::vector<Argument> arguments, size_t level, int depth, std::vector<Buffer>* results);

  const ModelFile& file_;
  Source& source_;
  Workspace& workspace_;  // has the arenas of the stages under way
  const int graph_;
  std::unique_ptr<Parallel> lanes_;  // null: one step after the other
  std::vector<std::shared_ptr<Delegate>> delegates_;
  bool fast_ = false, watched_ = false;
  Observer* observer_ = nullptr;
  NodeTimes* times_ = nullptr;
  std::list<std::pair<std::string, std::shared_ptr<Stage>>> stages_;  // used last: in front
  uint64_t made_ = 0;
  uint64_t bound_ = 0;  // number of the stage that the caller bound last; 0: its addresses are lost
  uint64_t moves_ = 0;  // of the first arena, when the stage was bound
};

}  // namespace mycelia::lite

#endif
