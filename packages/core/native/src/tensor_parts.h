// What the files of the Tensor type share: tensor.cc (life, attributes, conversion), operators.cc, interchange.cc.
#pragma once
#include "core.h"

namespace mycelia {

// True when the tensor has memory; else an error is set that says why it has none.
bool has_data(Tensor* t);

// operators.cc
extern const PyType_Slot operator_slots[];
extern const int operator_slot_count;
PyObject* set_operator(PyObject*, PyObject* args);  // set_operator(name, callable)

// interchange.cc
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);
PyObject* method_dlpack(PyObject* self, PyObject* args, PyObject* kwargs);
PyObject* method_dlpack_device(PyObject* self, PyObject*);
PyObject* method_from_dlpack(PyObject*, PyObject* capsule);
int init_interchange();

}  // namespace mycelia
