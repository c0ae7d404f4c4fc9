// What the files of the Tensor type share.
#pragma once
#include "core.h"

namespace mycelia {

// True when the tensor has memory; else an error is set that says why it has none.
bool has_data(Tensor* t);

// attributes.cc
extern PyGetSetDef tensor_attributes[];
// The shape of the graph value that a tensor stands for: its sizes may be symbolic (ir/symint.py). NULL without an error: there is
// no such value.
PyObject* traced_shape(PyObject* self);
int set_attribute(PyObject* self, PyObject* name, PyObject* value);

// creation.cc
PyObject* module_empty(PyObject*, PyObject* args);
PyObject* module_on_device(PyObject*, PyObject* args);
PyObject* module_make_traced(PyObject*, PyObject* args);

// operators.cc
extern const PyType_Slot operator_slots[];
extern const int operator_slot_count;
PyObject* set_operator(PyObject*, PyObject* args);  // set_operator(name, callable)

// scalars.cc
PyObject* to_int(PyObject* self);
PyObject* to_float(PyObject* self);
PyObject* to_index(PyObject* self);
int to_bool(PyObject* self);
PyObject* method_item(PyObject* self, PyObject* const* args, Py_ssize_t n);

// arrays.cc
bool is_native_array(PyObject* object);  // a numpy.ndarray itself whose elements and rank a Tensor can have
PyObject* method_asnumpy(PyObject* self, PyObject*);
PyObject* method_array(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* method_from_numpy(PyObject*, PyObject* array);
PyObject* method_bits(PyObject* self, PyObject*);  // of any dtype, by NumPy's of its size
PyObject* module_from_array(PyObject*, PyObject* args);
int init_arrays();

// interchange.cc
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);
PyObject* method_dlpack(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* method_dlpack_device(PyObject* self, PyObject*);
PyObject* method_from_dlpack(PyObject*, PyObject* capsule);
int init_interchange();

}  // namespace mycelia
