// A `.ms` file as plain structs; names and data point into the file, which must stay.
#ifndef MYCELIA_LITE_MODEL_FILE_H_
#define MYCELIA_LITE_MODEL_FILE_H_

#include <memory>
#include <string_view>
#include <vector>

#include "flatbuffer.h"
#include "memory.h"
#include "model_bytes.h"
#include "obfuscation.h"
#include "status.h"

namespace mycelia::lite {

// Columns of a panel, in which kernels read the weights of products and convolutions (ops/lowered/packed.py of core).
constexpr int64_t kPanel = 16;

// Integers of 8 or 16 bits that stand for float32: (q - zero) * scale + shift, with one of each or one for each index of an axis.
struct Scales {
  std::vector<float> scale, zero, shift;
  int axis = -1;  // -1: not known yet, or there is one scale
  int bits = 0;  // of an integer, if they lie one behind another as fields of so many bits: q + 2^(bits - 1); 0: as their dtype has them
  int groups = 1;  // equal runs of an index of the axis, the rest of a matrix, each with numbers of its own: [index, group]
};

struct FileTensor {
  std::string_view name;
  int32_t dtype = 0, format = 0;  // MindSpore's numbers
  std::vector<int64_t> shape;
  const uint8_t* data = nullptr;  // of a constant
  uint64_t bytes = 0;
  bool half = false;  // a constant whose elements are float16 or bfloat16, but stand for float32
  std::shared_ptr<Scales> scales;  // of a constant whose elements are integers, but stand for float32
  std::shared_ptr<const Scales> meaning;  // of integers that are fed or computed: what they stand for
  // A constant whose columns, the last axis or the first one, are stored in panels as kernels on packed weights read them:
  // the output of a Custom node "panels", which is no node of ours. `bytes` has the columns that fill the last panel.
  enum Panels : uint8_t { kNone, kColumnsFirst, kColumnsLast } panels = kNone;
};

// A subgraph that a node runs, and the tensors that become its inputs.
struct FileBranch {
  int graph = 0;
  std::vector<uint32_t> inputs;
};

struct FileNode {
  std::string_view name;
  uint8_t kind = 0;  // tag of the union of primitives
  Table attributes;
  std::vector<uint32_t> inputs, outputs;
  // Call: one branch, or those for a true and a false condition, or by number; what chooses is input 0 then. All their inputs
  // are inputs of the node. Custom of type Loop: the body; inputs are the number of runs, the condition, `carried` values, and what stays.
  std::vector<FileBranch> branches;
  bool widens = false;  // the weights that it reads are integers with scales
  bool of_integers = false;  // it computes with integers of 8 bits, data and weights
  bool loops = false;
  bool by_number = false;  // input 0 is the number of the branch
  int carried = 0;
};

// A variable where a graph reads it, by a Custom node State, and what a run of the graph leaves in it, by a Custom node SetState.
struct GraphState {
  size_t variable = 0;
  uint32_t tensor = 0, next = 0;
  bool set = false;
};

struct FileGraph {
  std::string_view name;
  std::vector<uint32_t> inputs, outputs;  // behind its own those of variables, in the order of `states`
  size_t own_inputs = 0, own_outputs = 0;
  std::vector<GraphState> states;
  int first = 0, last = 0;  // its nodes, in order of execution: first, ..., last - 1
  int cycle = -1;  // those that call one another in a circle have the same number from 0 on
};

// A variable that a model keeps from run to run: a Custom node State of the first subgraph with the elements for the first run. What a
// model learns is variables: `role` says which.
struct FileState {
  enum Role : uint8_t { kPlain, kTrained, kStatistic, kOptimizer, kRate, kMomentum };
  uint32_t tensor = 0;  // of the first subgraph: its name is the variable's
  std::string_view first;
  Role role = kPlain;
};

// What a model that learns has beside the first subgraph, a step of its training: a Custom node Training (states.cc).
struct FileTraining {
  bool there = false;
  int forward = -1;  // subgraph from the inputs, without labels, to what the model answers; -1: none
  int gradients = -1, update = -1;  // the two halves of a step, between which gradients are inputs of the second
  // A model for inference: the bytes of its file without those of variables. Each hole is where one of them belongs.
  struct Hole {
    size_t at = 0, variable = 0;
    bool last = false;  // [O, I, h, w] goes there as [O, h, w, I]
  };
  std::string_view answers;
  std::vector<Hole> holes;
};

struct ModelFile {
  std::unique_ptr<Reader> reader;
  std::vector<FileTensor> tensors;
  std::vector<FileNode> nodes;  // of all graphs, without those that only prepare a call (PartialFusion, Switch)
  std::vector<FileGraph> graphs;  // the first one is the model
  std::vector<uint32_t> inputs, outputs;  // of the model
  std::string_view fixed_by;  // the node that holds for the sizes in the file alone; empty: none
  Revealed revealed;  // of an obfuscated model
  std::vector<FileState> states;
  FileTraining training;
  OutsideFiles outside;  // weights that are not in the file itself
  std::vector<Memory> decoded;  // weights that the file has in an entropy code
  const ModelBytes* bytes = nullptr;  // of the file, if they stay

  // Bytes that will all be read soon, and lie in memory already as a rule: their pages are mapped at once.
  void expect(const uint8_t* data, size_t count) const {
    if (bytes) bytes->expect(data, count);
    outside.expect(data, count);
  }

  // Bytes that were read and are kept in another form.
  void release(const uint8_t* data, size_t count) const {
    if (bytes) bytes->release(data, count);
    outside.release(data, count);
  }
};

// Reads and checks: every index is one of a tensor, a value is written before it is read, calls fit what they call.
Status read_model_file(const uint8_t* data, size_t size, ModelFile* file);

constexpr uint32_t kMostGraphs = 512;

// The part that reads nodes and graphs, when tensors, inputs and outputs have been read (graphs.cc).
Status read_graphs(const Table& root, ModelFile* file);
// Of the nodes from `first` on, those of one graph: what they call, without those that only prepare a call (subgraphs.cc).
Status resolve_calls(int first, ModelFile* file);
// Whether calls fit what they call; finds subgraphs that call one another in circles.
Status check_calls(ModelFile* file);
// A Custom node of type State, SetState or Training tells of the variables of the model, `found` (states.cc).
Status read_state(const FileNode& node, size_t graph, ModelFile* file, bool* found);
// The bytes of an attribute of a Custom node, null if there is none; the number in one, -1 if there is none or it is not from 0 to
// `most` (states.cc).
Span<uint8_t> attribute_of(const FileNode& node, std::string_view name);
int64_t attribute_number(const FileNode& node, std::string_view name, int64_t most);
// A Custom node Training; whether its parts fit (training_file.cc).
Status read_training(const FileNode& node, ModelFile* file);
Status check_training(const ModelFile& file);
// When all graphs are read: variables become inputs and outputs of them.
Status bind_states(ModelFile* file);
// A Custom node of type panels says how its input, a constant, holds the weights that are its output (panels.cc).
Status read_panels(const FileNode& node, ModelFile* file, bool* found);
// A Custom node of type low_bit has fields and scales, in constants, of the weights that are its output (low_bit.cc).
Status read_low_bit(const FileNode& node, ModelFile* file, bool* found);
// `count` fields of `bits` bits, one behind another, from an entropy code of `size` bytes in so many lanes; false if it is damaged (coded.cc).
bool decode_fields(const uint8_t* coded, uint64_t size, int64_t lanes, int bits, int64_t count, uint8_t* fields);
// The scales of a tensor of integers; null if it has none, or they are stored in a way that is not read (scales.cc).
std::shared_ptr<Scales> read_scales(const Table& table, int32_t dtype);
// Numbers [index, group] as [group, index].
std::vector<float> groups_first(const std::vector<float>& numbers, int64_t groups);
// Why scales of a constant are not read, in words.
extern const char* const kUnreadScales;
// Integers with scales are weights of nodes that say so; else it fails.
Status find_scales(ModelFile* file);

inline std::vector<uint32_t> indices(const Span<uint32_t>& span) {
  std::vector<uint32_t> found(span.size);
  for (uint32_t i = 0; i < span.size; ++i) found[i] = span[i];
  return found;
}

inline Status broken(const std::string& text) { return {kGraphInvalid, message({"the model file is damaged: ", text})}; }

// The name of a primitive's tag.
std::string name_of_operator(uint8_t kind);

// abi.h's number of MindSpore's number of a dtype, -1 if there is none; and back.
int32_t abi_dtype(int32_t number);
int32_t file_dtype(int32_t abi);
int64_t item_bytes(int32_t abi);

// The number of elements, -1 if it does not fit into 2^47.
int64_t element_count(const std::vector<int64_t>& shape);

}  // namespace mycelia::lite

#endif
