// A model as it runs for one set of input shapes: values, steps that compute them, and where they lie.
//
// Where shapes, or which branch runs, depend on data, one plan is not enough: it goes as far as is known and ends a
// stage. When its steps have run, the plan of the next stage goes on from there with the numbers that were missing.
#ifndef MYCELIA_LITE_PLAN_H_
#define MYCELIA_LITE_PLAN_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory.h"
#include "model_file.h"
#include "mycelia/abi.h"

namespace mycelia::lite {

struct Type {
  int32_t dtype = MYC_F32;
  std::vector<int64_t> shape;

  int rank() const { return static_cast<int>(shape.size()); }
};
std::string text_of(const Type& type);

struct Delegate;
class Parallel;

struct Value {
  Type type;
  const uint8_t* constant = nullptr;
  const FileTensor* stored = nullptr;  // a constant of float32 whose elements are stored as this tensor has them, in fewer bytes
  bool lasting = false;  // a constant that is the same for all input shapes and runs
  int root = -1;  // the value whose memory this one shares; itself if it has its own
  int64_t offset = 0;  // bytes from the beginning of that memory
  int64_t place = -1;  // in the arena
  int scale = -1;  // of integers that a DynamicQuant made: the value that has their scale
  bool outside = false;  // it has memory that is not of this stage's arena: `Plan` says whose
};

struct Step {
  myc_kernel_fn kernel = nullptr;  // null: copies the input
  std::vector<uint8_t> attributes;
  std::vector<int> inputs, outputs;  // values; -1: absent
  int node = -1;
  const char* op = "";  // which the kernel is for
};

// A node as it runs: the steps [first, last) and the values of its inputs and outputs, -1 for an absent one. One whose results
// are constants and views has no step.
struct NodeRun {
  int node = -1;
  int first = 0, last = 0;
  std::vector<int> inputs, outputs;
};

// Constants that are not in the file as kernels take them, packed weights above all, by what they were made of.
struct Pack {
  Type type;
  Memory memory;
};
using Packs = std::map<std::string, Pack>;

// Steps that an operator emitted before it came to a number that was not known.
struct Emitted {
  std::string op;
  std::vector<int> inputs;
  std::vector<uint8_t> attributes;
  std::vector<Type> types;
  std::vector<int> outputs;
};

// The nodes of a subgraph, where it is called from another: tensors of the file have values by scope.
struct Scope {
  int graph = 0;
  int caller = -1;  // the scope of the node that calls it
  int node = -1;  // which that is
  std::unordered_map<uint32_t, int> values;  // of tensors that are no constants of the file
};

// Something left for a later stage: a node, or the end of a subgraph, whose outputs become those of its caller.
struct Item {
  int node = -1;
  int scope = 0;
  bool returns = false;
  int activation = -1;  // whose results are the node's
  std::vector<Emitted> emitted;
  int waits = 0;  // stages that it asked for a number
};

// A subgraph that runs with memory of its own when the steps of a stage are done: a loop, or a subgraph that calls itself.
struct Activation {
  int graph = 0;
  std::vector<int> arguments;  // values
  int node = -1;
  bool loops = false;  // arguments: number of runs, condition, what is carried, what stays
  int carried = 0;
};

struct Plan {
  std::vector<Value> values;
  std::vector<Step> steps;
  const Parallel* parallel = nullptr;  // steps that do not wait for one another run at the same time; set before planning
  const std::vector<std::shared_ptr<Delegate>>* delegates = nullptr;  // that may claim nodes; set before planning
  std::vector<std::shared_ptr<void>> kept;  // what steps of delegates point to
  std::string partition;  // which node is where, and why, if there are delegates
  bool resized = false;  // an input of the model has another size than the file says
  bool fast = false;  // large products may round worse; set before planning
  bool watched = false;  // each node has steps of its own; set before planning
  bool learns = false;  // variables may be written over while a run goes on; set before planning
  bool portable = false;  // it is for other processors and not run: weights keep their own order, steps are not joined; set before planning
  std::vector<NodeRun> nodes;  // if watched or with delegates: in the order of their steps, without those that only call a subgraph
  std::vector<std::pair<int, int>> outputs;  // (which output of the graph, its value) that this stage makes
  std::vector<bool> overwrites;  // by output of the graph: it may lie in the memory of the variable whose next value it is
  int64_t arena_bytes = 0;
  // Memory from outside.
  std::vector<int> inputs;  // the values of the graph's inputs, in the first stage
  std::vector<std::pair<int, int>> imported;  // (value, value of the stage before)
  struct Result {
    int value, activation, index;
  };
  std::vector<Result> results;  // of activations of the stage before
  Packs packs;  // constants that follow from shapes or data
  // What the next stage needs.
  std::vector<Item> rest;
  std::vector<Scope> scopes;
  std::vector<bool> made;  // outputs of the graph that this or an earlier stage makes
  std::vector<int> missing;  // values whose elements the next plan depends on
  std::vector<Activation> activations;
  bool tail = false;  // nothing is left but an activation whose results are those of the graph
};

// Makes the plan of a stage. What depends on constants alone is computed here.
struct Windows;

// Weights of at most 8 bits as kernels read them, integers for each of which there is one scale and zero. Of a portable plan `pack` has
// the bytes of the file and `order` tells how these lie; it stands where other plans may have a residual.
struct LowBit {
  int pack = -1, scale = -1, zero = -1, order = -1;
  int64_t bits = 0, group = 0;
};

class Planner {
 public:
  // `packs`: constants that serve all plans; `pool`: the memory of weights among them.
  Planner(const ModelFile& file, Packs* packs, Pool* pool, Plan* plan) : file_(file), packs_(packs), pool_(pool), plan_(*plan) {}

  // The first stage of a subgraph.  `types`: of its inputs.
  Status run(int graph, const std::vector<Type>& types);
  // The stage after `before`.  `numbers`: the elements of its `missing`; `results`: types of the results of its activations.
  Status resume(const Plan& before, const std::vector<const uint8_t*>& numbers, const std::vector<std::vector<Type>>& results);

  // ---- what operators use; the first fault ends the planning
  const FileNode& node() const { return *node_; }
  int input(size_t i);  // value of the node's input; fails if it is absent
  int optional_input(size_t i);  // -1 if it is absent
  // The panels in which the i-th input lies in the file, and its type; -1 if it does not lie in panels.
  int panels(size_t i, Type* type);
  bool panels_are_of_first_axis(size_t i) const { return file_.tensors[node_->inputs[i]].panels == FileTensor::kColumnsFirst; }
  const Type& type(int value) const { return plan_.values[value].type; }
  const uint8_t* constant(int value) const { return plan_.values[value].constant; }
  bool is_fast() const { return plan_.fast; }
  bool is_portable() const { return plan_.portable; }
  bool is_compact(int value) const { return plan_.values[value].stored; }  // it stands for float32, but is stored in fewer bytes
  // What the i-th input, a constant of the file that is compact, is stored as, and its bytes as they lie there.
  const FileTensor& stored(size_t i) const { return file_.tensors[node_->inputs[i]]; }
  // Whether kernels read the constant `matrix`, input i of the node, as it is stored (low_bit.cc).
  bool low_bit(size_t i, int matrix, bool transposed, LowBit* found);
  // The product and the convolution of x with such weights.
  int low_bit_linear(int x, const LowBit& weights, int bias, int8_t activation, const Type& out);
  int low_bit_conv(int x, const LowBit& weights, int bias, const Windows& windows, int8_t activation, const Type& out);
  const FileTensor& result(size_t i) const { return file_.tensors[node_->outputs[i]]; }  // what the file says of the i-th output
  // The first result of the node's operator, if its inputs had these values (-1: those that they have).
  int plainly(const std::vector<int>& values);
  // A constant of integers as they lie in the file, also one that stands for float32.
  int stored_integers(size_t i) { return value_of_bytes(node_->inputs[i], {abi_dtype(stored(i).dtype), stored(i).shape}); }
  // The scale that a dynamic quantization found for a value, as a value; -1 if there is none.
  int dynamic_scale(int value) const { return plan_.values[value].scale; }
  void set_dynamic_scale(int value, int scale) { plan_.values[value].scale = scale; }
  int stored_bytes(size_t i) { return value_of_bytes(node_->inputs[i], {MYC_U8, {static_cast<int64_t>(stored(i).bytes)}}); }
  // The integers of a value of int32, int64 or bool. One that is no constant ends the stage: the operator is planned
  // once more, with the number, when the steps so far have run. Until then it is not `ok`.
  std::vector<int64_t> integers(int value, const char* what);

  template <class Attributes>
  int emit(const char* op, std::initializer_list<int> inputs, const Attributes& attributes, const Type& out) {
    static_assert(std::is_trivially_copyable_v<Attributes>, "attributes are copied as bytes");
    return emit_bytes(op, inputs.begin(), inputs.size(), &attributes, sizeof(attributes), out);
  }
  template <class Attributes>
  int emit(const char* op, const std::vector<int>& inputs, const Attributes& attributes, const Type& out) {
    return emit_bytes(op, inputs.data(), inputs.size(), &attributes, sizeof(attributes), out);
  }
  int emit(const char* op, std::initializer_list<int> inputs, const Type& out) { return emit_bytes(op, inputs.begin(), inputs.size(), nullptr, 0, out); }
  int emit(const char* op, const std::vector<int>& inputs, const Type& out) { return emit_bytes(op, inputs.data(), inputs.size(), nullptr, 0, out); }
  int emit(const char* op, const std::vector<int>& inputs, std::vector<uint8_t> attributes, Type out);
  // The same for packed weights, which are kept as long as the model if what they are made of is.
  template <class Attributes>
  int emit_pack(const char* op, int weights, const Attributes& attributes, const Type& out) {
    packs_next_ = true;
    const int made = emit(op, {weights}, attributes, out);
    packs_next_ = false;
    return made;
  }
  // A kernel with several results.
  template <class Attributes>
  std::vector<int> emit_all(const char* op, const std::vector<int>& inputs, const Attributes& attributes, std::vector<Type> outs) {
    return emit_all(op, inputs, std::vector<uint8_t>(reinterpret_cast<const uint8_t*>(&attributes), reinterpret_cast<const uint8_t*>(&attributes + 1)),
                    std::move(outs));
  }
  std::vector<int> emit_all(const char* op, const std::vector<int>& inputs, std::vector<uint8_t> attributes, std::vector<Type> outs);
  // A constant that is not in the file, which may follow from shapes; and a number that follows from attributes alone.
  int made_constant(Type type, const void* data) { return made_constant(std::move(type), data, false); }
  int scalar(int32_t dtype, double value);
  // A constant that `make` computes from the constant `from`, once for all input shapes if that is lasting; what it needs
  // on the way is not kept.
  int once(const std::string& what, int from, const std::function<int()>& make);
  // The same elements in another shape.
  int view(int value, std::vector<int64_t> shape);
  // The same bytes as elements of another type, of which there are as many bytes.
  int reinterpreted(int value, Type as);
  // The axes in another order: a view where the elements stay in theirs.
  int turned(int value, const std::vector<int>& order);
  // The same image with the channels first, or last, in the memory: operators on images [N, H, W, C] that make it with the
  // channels first say so, others that work either way ask. A form that nothing reads is not computed.
  int first_of(int value) const;  // -1 if it was made with the channels last
  int channels_first(int value);
  int channels_last(int first);
  void set_output(size_t i, int value);
  // Whether the file says another shape of the i-th input than it has, since the model was resized.
  bool was_resized(size_t i);
  // Plans a Custom node of a type that the program registered (user_operators.cc); false if it did not.
  bool user_operator(const std::string& type);
  int fail(int code, const std::string& why);  // returns a value that may be used on
  bool ok() const { return status_.code == kSuccess && !waits_; }
  // Offers the nodes of this stage to the delegates, in the order of preference (delegate.cc).
  void delegate_steps();

 private:
  // The code of vectors is there once, not at each call of `emit`.
  int emit_bytes(const char* op, const int* inputs, size_t count, const void* attributes, size_t size, const Type& out);
  int add(Value value);
  int shared(int value, Type as);  // the memory of a value under another type
  int add(const Pack& pack, bool lasting);
  int made_constant(Type type, const void* data, bool lasting);
  Packs& packs(bool lasting) { return lasting ? *packs_ : plan_.packs; }
  bool fits(const Type& type);
  // Null if there is none; it fails unless a wider dtype may have one, which `narrow` and `wide` then tell.
  myc_kernel_fn kernel_of(const char* op, const std::vector<int>& inputs, const std::vector<uint8_t>& attributes, int32_t* narrow, int32_t* wide);
  // The dtype in which an op without a kernel for `dtype` is computed, -1 if there is none.
  int32_t wider(const char* op, int32_t dtype) const;
  std::vector<int> emit_wide(const char* op, const std::vector<int>& inputs, const std::vector<uint8_t>& attributes, const std::vector<Type>& outs,
                             int32_t narrow, int32_t wide);
  int folded(myc_kernel_fn kernel, const char* op, const std::vector<int>& inputs, const std::vector<uint8_t>& attributes, Type out);
  int widened(int value);
  int scaled(int value, const Scales& scales, const Type& wide);  // scales.cc
  std::vector<int> widened(std::vector<int> values);
  const std::vector<int>* emitted_before(const Emitted& wanted);

  // ---- stages (stages.cc, calls.cc)
  Status finish();
  int value_of(int scope, uint32_t tensor);
  int value_of_constant(uint32_t tensor);
  int value_of_bytes(uint32_t tensor, Type type);
  bool is_known(int scope, uint32_t tensor) const;
  int value_of_panels(uint32_t tensor);  // panels.cc
  int unpacked(uint32_t tensor);
  void work(std::vector<Item> items);
  void lower(Item item);
  bool enter(Item* item);
  void call(Item item, int taken);
  void loop(Item item);
  void note(int first, int scope);
  void leave(const Item& item);
  void activate(Item item, Activation activation);
  void take_results(const Item& item);
  bool ready(const Item& item);
  bool runs(int graph, int scope) const;
  int imported(const Plan& before, int value);
  void make_outputs();
  bool is_tail() const;
  std::vector<bool> needed_later() const;
  std::vector<int> readers_of_memory() const;  // inputs of steps that read the memory of each value
  void join_steps();  // joins.cc
  void join_chains();  // chain.cc
  void write_parts_in_place();  // parts.cc
  void compute_in_place();  // in_place.cc
  void update_in_place();
  void place();

  const ModelFile& file_;
  Packs* packs_;
  Pool* pool_;
  bool packs_next_ = false;  // what is computed next is packed weights
  Plan& plan_;
  const FileNode* node_ = nullptr;
  int node_index_ = -1;
  int scope_ = 0;
  std::vector<Emitted> emitted_, replayed_;  // of the node at work: now, and in the stage before
  bool waits_ = false;  // the node at work asked for a number that is not known
  std::unordered_map<uint32_t, int> constants_, panels_;  // values of the file's constants, and of those that lie in panels as such
  std::unordered_map<uint32_t, int> imports_;  // value of the stage before -> ours
  std::unordered_map<int, const uint8_t*> numbers_;  // elements of values of the stage before
  std::vector<std::vector<Type>> results_;  // of the activations of the stage before
  std::unordered_map<uint32_t, int> firsts_;  // images by their form with the channels last
  int64_t entered_ = 0;  // nodes of subgraphs
  Status status_;
};


// The node at work on integers of 8 bits with scales: quantType QUANT_ALL or QUANT_DYNAMIC (integer_layers.cc).
void integer_operator(Planner& p);

}  // namespace mycelia::lite

#endif
