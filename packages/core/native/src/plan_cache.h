// The plans that an op remembers, by signature: a key of int64 words from the types of a call's tensors and the values of its
// attributes, in the op's own open-addressing table.
#pragma once
#include <vector>

#include "core.h"

namespace mycelia {

extern uint64_t plan_epoch;  // plans of an earlier one are forgotten

enum Tag : int64_t {
  kTagTensor = 1 << 16, kTagNumber = 2 << 16, kTagNone = 3 << 16, kTagList = 4 << 16, kTagInt = 5 << 16, kTagFloat = 6 << 16,
  kTagText = 7 << 16, kTagTuple = 8 << 16, kTagObject = 9 << 16, kTagBool = 10 << 16, kTagComplex = 11 << 16
};

// Keys are built in one shared buffer: the GIL is held and nothing here calls back into Python code.
struct KeyBuilder {
  static std::vector<int64_t> words;
  KeyBuilder() { words.clear(); }
  void add(int64_t w) { words.push_back(w); }
  uint64_t hash() const {
    uint64_t h = 0x243f6a8885a308d3ull;
    for (int64_t w : words) {
      h = (h ^ static_cast<uint64_t>(w)) * 0x9e3779b97f4a7c15ull;
      h ^= h >> 29;
    }
    return h;
  }
};

inline int number_kind(PyObject* o) {  // 0: no Python number
  if (PyFloat_CheckExact(o)) return 3;
  if (PyLong_CheckExact(o)) return 2;
  if (PyBool_Check(o)) return 1;
  if (PyComplex_CheckExact(o)) return 4;
  return 0;
}

inline void add_tensor_key(KeyBuilder* key, const Tensor* t) {
  key->add(kTagTensor | t->t.rank << 8 | t->t.dtype);
  for (int i = 0; i < t->t.rank; ++i) key->add(t->t.shape[i]);
}

// False: the value has no key (unhashable); an error is set.
bool add_value_key(KeyBuilder* key, PyObject* v);

void clear_table(Op* op);
// `attrs`: the values as given. A key holds addresses of unknown objects, so these must not die before the entry.
bool insert_plan(Op* op, const std::vector<int64_t>& key, uint64_t hash, PyObject* attrs, Plan* plan);

inline Plan* find_plan(Op* op, const KeyBuilder& key, uint64_t hash) {
  if (op->epoch != plan_epoch) {
    clear_table(op);
    op->epoch = plan_epoch;
  }
  if (!op->capacity) return nullptr;
  const int32_t n = static_cast<int32_t>(key.words.size());
  for (int i = static_cast<int>(hash & (op->capacity - 1));; i = (i + 1) & (op->capacity - 1)) {
    const PlanEntry& e = op->table[i];
    if (!e.plan) return nullptr;
    if (e.hash == hash && e.length == n && std::memcmp(e.key, key.words.data(), sizeof(int64_t) * n) == 0) return e.plan;
  }
}

}  // namespace mycelia
