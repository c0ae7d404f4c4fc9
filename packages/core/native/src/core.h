// Shared declarations of the native core: storage, Tensor, Op, Plan, tape. Raw CPython API throughout, because a
// binding library alone would cost more than a whole small op (docs/architecture.md, "The eager path").
//
// Ownership: Storage is counted by hand and only touched with the GIL held; everything else is a Python object.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "mycelia/abi.h"

namespace mycelia {

// ---- storage -------------------------------------------------------------------------------------------------------

// A block of memory. `exports` counts the references held by NumPy arrays, buffers and DLPack consumers: they see
// in-place updates, while another Tensor on the same block makes an update copy first (copy-on-write). `stamp` is new for each
// block and after each write into it, so that a stamp seen before means the content seen before; what others write through an
// export shows when the export ends.
struct Storage {
  int64_t refs;
  int64_t exports;
  int64_t bytes;    // usable size
  char* data;
  int32_t bin;      // free list it returns to, or one of the two below
  int32_t device;   // where it lies; kHost, or what add_device returned
  PyObject* owner;  // keeps foreign memory alive
  uint64_t stamp;
};

constexpr int32_t kForeign = -1;   // a bin: memory of `owner`
constexpr int32_t kOfDevice = -2;  // a bin: memory that the device allocated
constexpr int32_t kHost = 0;       // the device whose memory this process reads and writes
constexpr int32_t kMaxDevices = 127;

Storage* storage_alloc(int64_t bytes);                      // on the host; NULL with MemoryError set
Storage* storage_wrap(void* data, int64_t bytes, PyObject* owner);  // takes a new reference to owner
void storage_free(Storage* s);
inline void retain(Storage* s) { ++s->refs; }
inline void release(Storage* s) {
  if (s && --s->refs == 0) storage_free(s);
}
inline bool is_shared(const Storage* s) { return s->refs - s->exports > 1; }
extern uint64_t last_stamp;
inline uint64_t next_stamp() { return ++last_stamp; }
inline void release_export(Storage* s) {
  --s->exports;
  s->stamp = next_stamp();
  release(s);
}
uint64_t hash_bytes(const void* data, int64_t bytes);
PyObject* storage_statistics();
void storage_empty_cache();
void storage_reset_peaks(bool live, bool reserved);
void storage_set_limit(int64_t bytes);
int64_t storage_limit();

// ---- devices with memory of their own ---------------------------------------------------------------------------------

// Each is a Backend object (mycelia.backends.base) that allocates, frees and copies. What it calls an address is a number to
// us: offsets are added to it, and it is handed back. Nothing here reads or writes what lies there.
extern bool other_devices;                                  // whether there is any besides the host
Storage* device_alloc(int32_t device, int64_t bytes);       // NULL with an error set
void device_free(Storage* s);                               // of bin kOfDevice
bool copy_bytes(void* to, int32_t to_device, const void* from, int32_t from_device, int64_t bytes);
bool is_device(int64_t number);                             // false with an error set
PyObject* device_name(int32_t device);                      // new reference
int init_device(PyObject* module);

// ---- Tensor --------------------------------------------------------------------------------------------------------

struct Node;

enum TensorFlags : uint32_t {
  kParameter = 1,  // reads inside a trace become graph inputs
};

struct Tensor {
  PyObject_HEAD
  Storage* storage;   // NULL: traced, or not yet initialised
  Node* node;         // tape node that made it, or NULL
  PyObject* traced;   // ir.Value while a graph is captured, or NULL
  PyObject* weakrefs;
  PyObject* dict;     // attributes a user has set, or NULL; only then does the garbage collector know the tensor
  int32_t node_output;
  uint32_t flags;
  myc_tensor t;
};

extern PyTypeObject* TensorType;
extern const int64_t kItemSize[MYC_DTYPE_COUNT];
extern PyObject* dtype_objects[MYC_DTYPE_COUNT];

inline bool is_tensor(PyObject* o) { return Py_TYPE(o) == TensorType || PyType_IsSubtype(Py_TYPE(o), TensorType); }
inline Tensor* as_tensor(PyObject* o) { return reinterpret_cast<Tensor*>(o); }

Tensor* tensor_object();                                    // empty Tensor, data not set
Tensor* tensor_empty(int32_t dtype, int32_t rank, const int64_t* shape);  // fresh memory on the host
Tensor* tensor_empty(int32_t dtype, int32_t rank, const int64_t* shape, int32_t device);
Tensor* tensor_view(Tensor* base, int32_t rank, const int64_t* shape, int64_t offset_bytes);
Tensor* tensor_from_array(PyObject* array, bool share);     // array: numpy.ndarray
PyObject* tensor_to_array(Tensor* t);                       // shares memory that lies on the host, else a copy
bool tensor_take(Tensor* target, Tensor* source);           // target becomes source (memory, shape, tape node)
Tensor* tensor_on(Tensor* t, int32_t device);               // itself if it lies there, else a copy; a new reference
Tensor* tensor_brought(Tensor* t, int32_t device);          // as tensor_on, but `t` itself moves if nobody else looks at its memory
int32_t dtype_code(PyObject* dtype);                        // -1 with TypeError set
PyObject* shape_tuple(const myc_tensor& t);
int init_tensor(PyObject* module);
int64_t count_elements(int32_t rank, const int64_t* shape);

// ---- Op and Plan ---------------------------------------------------------------------------------------------------

constexpr int kMaxInputs = 1024;  // members of a tensor list plus the other inputs

enum PlanKind : int32_t {
  kKernel = 0,     // call the native function
  kView = 1,       // output 0 is input 0 with another shape
  kReference = 2,  // call a Python function on NumPy arrays
  kCompose = 3,    // call a Python function on the original arguments; it calls other ops
  kLaunch = 4,     // call a Python function on Tensors of a device: those to read, those to write
  kCopy = 5,       // output 0 is input 0 in the memory of `device`
};

// What to do for one signature of one op: made once by dispatch.resolve, found again by Op's table.
struct Plan {
  PyObject_HEAD
  int32_t kind;
  int32_t n_out;
  myc_tensor* out;        // types only
  int32_t* scalar_dtype;  // per flat input: dtype in which a Python number is handed over; -1: a tensor
  int16_t n_in;
  int8_t device;          // where inputs and outputs lie when it runs
  int8_t home;            // where outputs lie afterwards: differs when another device stands in
  uint32_t flags;         // MYC_INPLACE
  int64_t work;           // elements touched; decides whether the GIL is released
  myc_kernel_fn fn;
  myc_context* (*context)();
  PyObject* capsule;      // keeps the kernel library alive
  PyObject* packed;       // bytes of the attribute struct
  PyObject* function;     // kReference, kCompose
  PyObject* attrs;        // canonical attributes, for the gradient rule
  PyObject* in_types;     // tuple of TensorType | None, flat
  PyObject* out_types;    // tuple of TensorType
};

enum ParamKind : int8_t { kTensorParam = 0, kOptionalParam = 1, kListParam = 2 };
enum OpFlags : uint32_t { kAlwaysTuple = 1, kNoGradient = 2, kDynamic = 4 };

// What a gradient rule's parameter asks for.
enum VjpArg : int8_t { kCt, kCts, kOut, kOuts, kInput, kInputShape, kInputDtype, kNeeds, kAttr };
struct VjpParam {
  int8_t kind;
  int32_t index;    // tensor parameter, or output
  PyObject* name;   // kAttr
};

struct PlanEntry {
  uint64_t hash;
  int32_t length;
  int64_t* key;
  PyObject* attrs;
  Plan* plan;
};

constexpr int kMaxTensorParams = 16;  // of one op; a list counts as one

struct Op {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* name;
  PyObject* definition;
  PyObject* weakrefs;
  int32_t n_params, n_attrs, n_updates;
  uint32_t flags;
  int32_t update_param[kMaxTensorParams];  // parameter that result i overwrites
  int8_t* param_kind;
  PyObject** param_names;   // tensor parameters, then attributes
  PyObject** attr_default;  // NULL: required
  PyObject* vjp;            // gradient rule or NULL
  int32_t n_vjp;
  VjpParam* vjp_params;
  uint8_t* saves_input;     // per tensor parameter
  bool saves_output;
  PlanEntry* table;
  int32_t capacity, used;
  uint64_t epoch;
};

extern PyTypeObject* OpType;
extern PyTypeObject* PlanType;
int init_op(PyObject* module);
int init_plan(PyObject* module);

// A Python number as one element, and as a 0-d tensor.
bool fill_scalar(int32_t dtype, PyObject* number, void* out);
Tensor* scalar_tensor(int32_t dtype, PyObject* number);

// Runs a plan on flat inputs (Tensor, number or NULL). Fills `outputs` with new references; an entry that is set already
// is the memory to use. False on error, with `outputs` left for the caller to release.
inline bool run_plan(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs);
// The same, for inputs that lie on the plan's device; so do the outputs then.
bool run_plan_there(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs);
// The same, with copies where there are several devices.
bool run_plan_between(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs);
inline bool run_plan(Op* op, Plan* plan, PyObject* const* inputs, Tensor** outputs) {
  return __builtin_expect(other_devices, 0) ? run_plan_between(op, plan, inputs, outputs) : run_plan_there(op, plan, inputs, outputs);
}
bool raise_kernel_error(Op* op, int32_t rc, const myc_context* ctx);
bool read_type(PyObject* type, myc_tensor* out);  // of an ir.types.TensorType; sizes may be -1

// The one thread-local word that takes a call off the fast path: any bit sends it to dispatch.slow_call. The bits belong
// to whoever pushes an interceptor there; capture uses 1.
extern thread_local uint32_t mode;
extern thread_local int32_t tape_level;  // > 0: ops are recorded

// ---- tape ----------------------------------------------------------------------------------------------------------

struct Edge {
  Node* node;
  int32_t output;
};

// A tensor kept for the backward pass, without its own Python object. Under saved-tensor hooks `packed` stands for its value:
// what the first hook made of it, and the hook that makes a tensor of that again.
struct Saved {
  Storage* storage;
  PyObject* traced;
  PyObject* packed;  // tuple, or NULL
  Node* node;  // NULL for outputs of the node itself: it would be a cycle
  int32_t node_output;
  uint32_t flags;
  myc_tensor t;
};

// One recorded op. `leaf` nodes stand for the variables of a gradient transform.
struct Node {
  PyObject_HEAD
  uint64_t seq;
  Op* op;            // NULL: leaf or custom
  PyObject* attrs;   // canonical attributes
  PyObject* in_types;
  PyObject* custom;  // callable(*cts) -> gradients, for custom_vjp and compiled calls
  PyObject* name;    // of a leaf or custom node, for messages
  PyObject* hook;    // hook(output, cotangent) -> cotangent, called when all of it has arrived; or NULL
  PyObject* origin;  // where in the user's code it comes from, kept for those who look at gradients; or NULL
  int32_t n_in, n_out;
  bool keeps_outputs;  // `custom` gets the outputs in front of the cotangents
  int32_t capacity;  // inputs this object has room for
  Edge* edges;       // n_in
  Saved* saved_in;   // n_in when anything is saved
  Saved* saved_out;  // n_out when anything is saved
  int32_t n_params;
  int32_t param_count[kMaxTensorParams];  // members of each tensor parameter (lists: count)
  myc_tensor* out_types;
};

extern PyTypeObject* NodeType;
int init_tape(PyObject* module);
bool record(Op* op, PyObject* attrs, PyObject* in_types, const int32_t* param_count, PyObject* const* inputs, int32_t n_in,
            Tensor* const* outputs, int32_t n_out);  // outputs that are updated inputs stay unrecorded
inline bool tracked(PyObject* o) { return is_tensor(o) && as_tensor(o)->node; }

// ---- program -------------------------------------------------------------------------------------------------------

int init_program(PyObject* module);
int init_signature(PyObject* module);
int init_dump_step(PyObject* module);
int init_shared_sums(PyObject* module);

// faults.cc: whether the native stack of a fault goes to a file descriptor; the end of that.
PyObject* watch_faults(PyObject*, PyObject* descriptor);
PyObject* forget_faults(PyObject*, PyObject*);

// ---- errors --------------------------------------------------------------------------------------------------------

// Makes the pending builtin error the Mycelia error of its kind, about `subject` (an op, a method) at the user's line.
void place_error(PyObject* subject);
void place_error(const char* subject);

// ---- Python callbacks, set once by mycelia.engine.dispatch and mycelia.engine.tensors.tensor ----------------------------------------------

struct Hooks {
  PyObject* resolve;         // (op, flat_types, attrs_tuple, counts) -> Plan
  PyObject* slow_call;       // (op, args, attrs) -> result
  PyObject* construct;       // Tensor(...) for anything but a plain ndarray
  PyObject* getitem;
  PyObject* setitem;
  PyObject* repr;
  PyObject* str;
  PyObject* concretize;      // traced tensor used as a Python value: raises
  PyObject* tensor_type;     // ir.types.TensorType
  PyObject* operand;         // a list or tuple beside an operator -> Tensor
};
extern Hooks hooks;

struct Tensors {  // owned references, released on scope exit
  std::vector<PyObject*> v;
  Tensors() = default;
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;
  ~Tensors() {
    for (PyObject* o : v) Py_XDECREF(o);
  }
};

struct OwnedRef {  // releases on scope exit
  PyObject* p;
  explicit OwnedRef(PyObject* o = nullptr) : p(o) {}
  ~OwnedRef() { Py_XDECREF(p); }
  OwnedRef(const OwnedRef&) = delete;
  OwnedRef& operator=(const OwnedRef&) = delete;
  PyObject* take() {
    PyObject* o = p;
    p = nullptr;
    return o;
  }
  explicit operator bool() const { return p != nullptr; }
};

}  // namespace mycelia
