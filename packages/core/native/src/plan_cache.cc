// Keys of attributes, and the table that an op keeps its plans in.
#define NO_IMPORT_ARRAY
#define PY_ARRAY_UNIQUE_SYMBOL mycelia_array_api
#define NPY_NO_DEPRECATED_API NPY_1_20_API_VERSION
#include "plan_cache.h"

#include <numpy/arrayobject.h>

namespace mycelia {

uint64_t plan_epoch = 1;
std::vector<int64_t> KeyBuilder::words;

bool add_value_key(KeyBuilder* key, PyObject* v) {
  if (v == Py_None) {
    key->add(kTagNone);
  } else if (PyBool_Check(v)) {
    key->add(kTagBool | (v == Py_True));
  } else if (PyLong_CheckExact(v)) {
    int overflow;
    const long long n = PyLong_AsLongLongAndOverflow(v, &overflow);
    // One that needs more bits is known by its address: the check of the attribute says which takes it.
    key->add(overflow ? kTagObject : kTagInt);
    key->add(overflow ? reinterpret_cast<intptr_t>(v) : n);
  } else if (PyFloat_CheckExact(v)) {
    int64_t bits;
    const double d = PyFloat_AS_DOUBLE(v);
    std::memcpy(&bits, &d, 8);
    key->add(kTagFloat);
    key->add(bits);
  } else if (PyUnicode_CheckExact(v)) {
    key->add(kTagText);
    key->add(PyObject_Hash(v));
    key->add(PyUnicode_GET_LENGTH(v));
  } else if (PyTuple_CheckExact(v) || PyList_CheckExact(v)) {
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(v);
    key->add(kTagTuple | n);
    for (Py_ssize_t i = 0; i < n; ++i) {
      if (!add_value_key(key, PySequence_Fast_GET_ITEM(v, i))) return false;
    }
  } else if (PyArray_IsScalar(v, Integer)) {
    OwnedRef n(PyNumber_Index(v));
    return n && add_value_key(key, n.p);
  } else if (PyArray_IsScalar(v, Floating)) {
    OwnedRef d(PyNumber_Float(v));
    return d && add_value_key(key, d.p);
  } else {
    key->add(kTagObject);
    key->add(reinterpret_cast<intptr_t>(v));
  }
  return true;
}

void clear_table(Op* op) {
  for (int i = 0; i < op->capacity; ++i) {
    if (!op->table[i].plan) continue;
    PyMem_Free(op->table[i].key);
    Py_DECREF(op->table[i].attrs);
    Py_DECREF(op->table[i].plan);
  }
  PyMem_Free(op->table);
  op->table = nullptr;
  op->capacity = op->used = 0;
}

namespace {

constexpr int kMaxTable = 1024;  // entries; a fuller table is cleared

void place(PlanEntry* table, int capacity, const PlanEntry& e) {
  int i = static_cast<int>(e.hash & (capacity - 1));
  while (table[i].plan) i = (i + 1) & (capacity - 1);
  table[i] = e;
}

}  // namespace

bool insert_plan(Op* op, const std::vector<int64_t>& key, uint64_t hash, PyObject* attrs, Plan* plan) {
  if (op->used >= kMaxTable) clear_table(op);
  if (2 * (op->used + 1) > op->capacity) {
    const int capacity = op->capacity ? 2 * op->capacity : 16;
    PlanEntry* table = static_cast<PlanEntry*>(PyMem_Calloc(capacity, sizeof(PlanEntry)));
    if (!table) {
      PyErr_NoMemory();
      return false;
    }
    for (int i = 0; i < op->capacity; ++i)
      if (op->table[i].plan) place(table, capacity, op->table[i]);
    PyMem_Free(op->table);
    op->table = table;
    op->capacity = capacity;
  }
  int64_t* words = static_cast<int64_t*>(PyMem_Malloc(sizeof(int64_t) * key.size()));
  if (!words) {
    PyErr_NoMemory();
    return false;
  }
  std::memcpy(words, key.data(), sizeof(int64_t) * key.size());
  Py_INCREF(plan);
  Py_INCREF(attrs);
  place(op->table, op->capacity, PlanEntry{hash, static_cast<int32_t>(key.size()), words, attrs, plan});
  ++op->used;
  return true;
}

}  // namespace mycelia
