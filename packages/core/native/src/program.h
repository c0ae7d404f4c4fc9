// What the files of the Program type share.
//
// A program computes values. Each value has one home, fixed when the program is built: a place in the arena, a constant, an
// input, a value that another one is a view of, or memory of its own, which is allocated in every run: results, and what Python
// code may keep.
#pragma once
#include <vector>

#include "core.h"

namespace mycelia {

using Ints = std::vector<int32_t>;

enum InstructionKind { kRunKernel, kRunReference, kRunView, kRunPython, kRunIf, kRunWhile, kRunHistory, kRunScan };

struct Instruction {
  InstructionKind kind;
  Op* op = nullptr;              // kRunKernel, kRunReference
  Plan* plan = nullptr;
  PyObject* callable = nullptr;  // kRunPython
  PyObject* programs[2] = {};    // kRunIf: true, false; kRunWhile, kRunHistory: condition, body; kRunScan: -, body
  int32_t condition = -1;        // kRunIf
  int32_t carried = 0;           // loops: so many inputs change from round to round
  int32_t scanned = 0;           // kRunScan: so many after them are cut into rows
  bool reverse = false;          // kRunScan
  Ints in, out;                  // values; -1: absent
  Ints free;                     // values whose Tensor is not needed any more
  int64_t work = 0;              // elements that a kernel or body touches
};

// Consecutive kernels, run without looking at anything in between, or one other instruction.
struct Step {
  int32_t begin, end;
  bool native;
  int64_t work;  // elements touched
  Ints fresh;    // values that get memory of their own before it
  Ints free;
  Ints tasks;    // ends of the tasks that may run at the same time; empty: all kernels in order
};

// Kernels from `begin` on in independent tasks; `ends` of these, in order.
struct TaskGroup {
  int32_t begin;
  Ints ends;
};

struct Update {
  int32_t value, input;  // after the run, the Tensor given as this input takes this value
  bool in_place;         // nothing reads the old value when the new one is written
};

struct Frame;

struct Timing {
  int64_t calls = 0, nanoseconds = 0;
};

// Which content of a Tensor the hoisted values were computed from.
struct Seen {
  uint64_t content = 0;
  const void* data = nullptr;
  bool operator==(const Seen& other) const { return content == other.content && data == other.data; }
};

struct Program;

// Values that depend only on inputs that rarely change, computed by `program` when these have changed. Programs that need the
// same values share them.
struct Hoisted {
  PyObject_HEAD
  PyObject* weakrefs;
  PyObject* info;      // whatever the compiler keeps with it
  Program* program;
  int64_t runs;
  int misses;          // runs of programs in a row that had to compute the values
  std::vector<Seen>* seen;
  std::vector<PyObject*>* tensors;
};

struct Source {
  Hoisted* hoisted;
  Ints inputs;  // positions of inputs that the values depend on
  Ints values;
};

struct Body {
  std::vector<Instruction> code;
  std::vector<Step> steps;
  std::vector<TaskGroup> task_groups;   // in order
  std::vector<myc_tensor> types;        // per value; data: of constants
  std::vector<uint8_t> fixed;           // per value: its type is known
  std::vector<int64_t> offset;          // per value: place in the arena or -1
  int32_t home = kHost;                 // the device in whose memory it runs
  std::vector<int32_t> devices;       // per value: where it lies; empty: all of them at home
  Ints base;                            // per value: the value whose memory it shares, or itself
  std::vector<Ints> views;              // per value: its views
  std::vector<PyObject*> constants;     // per value, NULL when none
  Ints inputs, outputs;                 // inputs: -1 when nothing reads it
  Ints holders;                         // values that a run may hold Tensors of
  Ints in_arena;
  std::vector<uint8_t> seen_outside;    // per value: Python code or other programs get its Tensor
  std::vector<Update> updates;
  std::vector<myc_kernel_fn> kernels;   // per instruction
  std::vector<myc_context* (*)()> contexts;
  Ints context_of;                      // per instruction: index into contexts, -1: no kernel
  int64_t arena_bytes = 0;
  std::vector<Frame*> idle;

  std::vector<Source> sources;
  PyObject* unfreeze = nullptr;  // called when hoisted values had to be computed too often

  std::vector<Timing> timings;   // per instruction while it is profiled
  PyObject* observer = nullptr;  // called after each instruction: observer(index, outputs)
  PyObject* meter = nullptr;     // called after each run with what `gauges` found: meter(table, finite)
  PyObject* gauges = nullptr;    // tuple: Plans of kernels that describe a tensor by `gauge_width` float64
  Plan* gauge_of[MYC_DTYPE_COUNT] = {};  // by dtype, from `gauges`, or NULL
  int32_t gauge_width = 0;
  Ints gauge_row;                // per instruction: the row of its first output
  int64_t gauge_rows = 0;
  std::vector<Ints> decided_by;  // per instruction: rows which, all of them zero, say that its own are; empty: none do
  int32_t counts_begin = 0, counts_end = 0;  // columns that count what is not finite
  PyObject* nodes = nullptr;     // what each instruction was made from
  PyObject* info = nullptr;      // whatever the builder wants to keep with the program
  bool profiled = false;
};

inline int32_t device_of(const Body* body, int32_t v) { return body->devices.empty() ? body->home : body->devices[v]; }

struct Program {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  Body* body;
  PyObject* weakrefs;
};

extern PyTypeObject* ProgramType;
extern PyTypeObject* HoistedType;
inline Program* as_program(PyObject* o) { return reinterpret_cast<Program*>(o); }

// program.cc
Program* new_program();
void clear_instruction(Instruction* ins);

// read_program.cc
PyObject* program_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);
bool read_instruction(PyObject* tuple, size_t n_values, Instruction* ins);
bool read_source(PyObject* tuple, const Body* body, Source* source);

// steps.cc
void derive(Body* body);  // what follows from values and instructions
void group_steps(Body* body);

// resize.cc
PyObject* program_resized(PyObject* self, PyObject* args);
PyObject* plan_offsets(PyObject* module, PyObject* args);

// frame.cc
void free_frame(Frame* frame);

// run.cc
// Runs the program; appends new references to its outputs. False with an error set, nothing appended.
bool run_program(Program* p, PyObject* const* inputs, size_t n, std::vector<PyObject*>* results);
bool run_kernels(const Body* body, Frame* f, int32_t begin, int32_t end, int64_t work);  // instructions [begin, end)

// instructions.cc
bool run_instruction(const Body* body, const Instruction& ins, Frame* f);
// A reference body, or what replaces a kernel that declined.
bool run_reference_instruction(const Body* body, const Instruction& ins, Frame* f);
bool store_results(const Body* body, const Instruction& ins, PyObject* const* results, size_t count, Frame* f);
bool run_inner(PyObject* program, const std::vector<PyObject*>& args, Tensors* results);

// loops.cc
bool run_while(const Body* body, const Instruction& ins, Frame* f);
bool run_history(const Body* body, const Instruction& ins, Frame* f);
bool run_scan(const Body* body, const Instruction& ins, Frame* f);

// instrument.cc
bool run_instrumented(Body* body, Frame* f);
PyObject* program_measure(PyObject* self, PyObject* args);
bool begin_measuring(const Body* body, Frame* f);  // room for what the gauges of a run find
bool end_measuring(const Body* body, Frame* f);    // hands it over
void measure(const Body* body, const Frame* f, int32_t i, myc_context* ctx);  // what instruction `i` has made

// hoisted.cc
bool take_hoisted(Body* body, Frame* f, PyObject* const* inputs);  // computes them again if what they depend on has changed
int init_hoisted(PyObject* module);

}  // namespace mycelia
