// What the files of the tape share.
#pragma once
#include "core.h"

namespace mycelia {

// saved_tensors.cc
bool save(Saved* s, Tensor* t, bool own_output);
void clear_saved(Saved* s);
PyObject* restore(const Saved& s, Node* self, int32_t output);  // self: whose output it is, or NULL
PyObject* set_saved_tensor_hooks(PyObject*, PyObject* pair);

// backward.cc
PyObject* backward(PyObject*, PyObject* args);
PyObject* gradient_origin(PyObject*, PyObject*);

// tape.cc
void forget_values(Node* n);

}  // namespace mycelia
