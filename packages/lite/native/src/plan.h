// A model as it runs for one set of input shapes: values, steps that compute them, and where they lie.
#ifndef MYCELIA_LITE_PLAN_H_
#define MYCELIA_LITE_PLAN_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
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

struct Value {
  Type type;
  const uint8_t* constant = nullptr;
  bool half = false;  // a constant of float32 whose elements are stored as float16
  int root = -1;  // the value whose memory this one shares; itself if it has its own
  int64_t place = -1;  // in the arena
  bool outside = false;  // an input or output of the model, which has memory of its own
};

struct Step {
  myc_kernel_fn kernel = nullptr;  // null: copies the input
  std::vector<uint8_t> attributes;
  std::vector<int> inputs, outputs;  // values; -1: absent
  int node = -1;
};

// Constants that are not in the file as kernels take them, packed weights above all, by what they were made of: they serve
// all input shapes.
struct Pack {
  Type type;
  Memory memory;
};
using Packs = std::map<std::string, Pack>;

struct Plan {
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<int> of_tensor;  // the value of each tensor of the file, -1 if it has none
  std::vector<int> inputs, outputs;  // the values of the model's, each with memory of its own
  int64_t arena_bytes = 0;
};

// Makes the plan. What depends on constants alone is computed here.
class Planner {
 public:
  Planner(const ModelFile& file, Packs* packs, Plan* plan) : file_(file), packs_(packs), plan_(*plan) {}

  // `shapes`: of the model's inputs.
  Status run(const std::vector<std::vector<int64_t>>& shapes);

  // ---- what operators use; the first fault ends the planning
  const FileNode& node() const { return *node_; }
  int input(size_t i);  // value of the node's input; fails if it is absent
  int optional_input(size_t i) const;  // -1 if it is absent
  const Type& type(int value) const { return plan_.values[value].type; }
  const uint8_t* constant(int value) const { return plan_.values[value].constant; }
  // Integers of a constant of int32 or int64; fails if it is none.
  std::vector<int64_t> integers(int value, const char* what);

  template <class Attributes>
  int emit(const char* op, const std::vector<int>& inputs, const Attributes& attributes, Type out) {
    return emit(op, inputs, std::vector<uint8_t>(reinterpret_cast<const uint8_t*>(&attributes), reinterpret_cast<const uint8_t*>(&attributes + 1)),
                std::move(out));
  }
  int emit(const char* op, const std::vector<int>& inputs, Type out) { return emit(op, inputs, std::vector<uint8_t>(), std::move(out)); }
  int emit(const char* op, const std::vector<int>& inputs, std::vector<uint8_t> attributes, Type out);
  // A kernel with several results.
  template <class Attributes>
  std::vector<int> emit_all(const char* op, const std::vector<int>& inputs, const Attributes& attributes, std::vector<Type> outs) {
    return emit_all(op, inputs, std::vector<uint8_t>(reinterpret_cast<const uint8_t*>(&attributes), reinterpret_cast<const uint8_t*>(&attributes + 1)),
                    std::move(outs));
  }
  std::vector<int> emit_all(const char* op, const std::vector<int>& inputs, std::vector<uint8_t> attributes, std::vector<Type> outs);
  // A constant that is not in the file.
  int made_constant(Type type, const void* data);
  int scalar(int32_t dtype, double value);
  // A constant that `make` computes from constants, once for all input shapes; what it needs on the way is not kept.
  int once(const std::string& key, const std::function<int()>& make);
  // The same elements in another shape.
  int view(int value, std::vector<int64_t> shape);
  void set_output(size_t i, int value);
  int fail(int code, const std::string& why);  // returns a value that may be used on
  bool ok() const { return status_.code == kSuccess; }

 private:
  int add(Value value);
  int add(const Pack& pack);
  bool fits(const Type& type);
  myc_kernel_fn kernel_of(const char* op, const std::vector<int>& inputs);
  int folded(myc_kernel_fn kernel, const char* op, const std::vector<int>& inputs, const std::vector<uint8_t>& attributes, Type out);
  int widened(int value);
  std::vector<int> widened(std::vector<int> values);
  void copy_outputs();
  void place();

  const ModelFile& file_;
  Packs* packs_;
  Plan& plan_;
  const FileNode* node_ = nullptr;
  int node_index_ = -1;
  Status status_;
};

// What lowers an operator of the file, by the tag of its primitive; null if this runtime does not have it.
using Operator = void (*)(Planner&);
Operator find_operator(uint8_t kind);

}  // namespace mycelia::lite

#endif
