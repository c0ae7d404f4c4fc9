// Values for event files as Python gives them: (tag, kind, content).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "module.h"

namespace mycelia::data {

struct Release {
  void operator()(PyObject* object) const { Py_XDECREF(object); }
};

// A value to be written. Goes with the interpreter's lock held.
struct Value {
  enum class Kind { kScalar, kImage, kHistogram };
  std::string tag;
  Kind kind;
  float number;
  std::unique_ptr<PyObject, Release> array;  // contiguous, of a dtype that is written; null: no batch of images of 1 or 3 channels

  bool is_known() const { return kind == Kind::kScalar || array; }
};

// The values of a sequence of tuples; false with an error set.
bool values_of(PyObject* sequence, std::vector<Value>* out);

// Appends Summary: {1: Value}, of which field 1 is the tag. Takes no lock.
void put_value(const Value& value, std::string* out);

}  // namespace mycelia::data
