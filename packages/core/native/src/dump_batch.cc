// What a data dump says of the tensors of a part of a step: names, headers, statistics and files of all of them in one go, since Python
// between them costs more than the files. What names and descriptions look like is said in Python (mycelia/debug/dump/tensor_files.py).
#include "dump_batch.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace mycelia {
namespace {

constexpr int kFirstFloat = 1, kFloats = 4;  // of the numbers: extremes, mean and norm; the others are counts
constexpr int kDigest = -1;                  // a column that Python fills
constexpr size_t kWorthThreads = 16 << 20;   // bytes: about half a millisecond of one core
constexpr size_t kStampDigits = 16;
constexpr Py_ssize_t kLongestName = 255;     // bytes that file systems take

std::string text_of(PyObject* str) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(str, &size);
  return data ? std::string(data, static_cast<size_t>(size)) : std::string();
}

// 16 digits and more of a time, as names and rows have it.
std::string stamp_text(int64_t stamp) {
  std::string text = std::to_string(stamp);
  if (text.size() < kStampDigits) text.insert(0, kStampDigits - text.size(), '0');
  return text;
}

void put_number(double number, bool is_count, std::string* out) {
  char text[40];
  if (is_count) {
    *out += ',';
    *out += std::to_string(static_cast<long long>(number));
    return;
  }
  if (number != number) std::snprintf(text, sizeof text, ",nan");  // C libraries show the sign of some
  else std::snprintf(text, sizeof text, ",%.9g", number);
  *out += text;
}

// What is the same as long as a stamp is: the memory of a Tensor that no one sees but Tensors.
bool has_stamp(const Storage* s) { return s->device == kHost && s->exports == 0 && s->bin != kForeign; }

}  // namespace

bool Form::parse(PyObject* settings) {
  return PyArg_ParseTuple(settings, "pO!O!OO!OOOOO:write", &raw, &PyTuple_Type, &columns, &PyTuple_Type, &gauges, &names, &PyDict_Type, &described,
                          &describe, &array, &numbers, &digests, &fitting);
}

Batch::~Batch() {
  for (Py_buffer& view : views_) PyBuffer_Release(&view);
}

bool Batch::take_gauges() {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(form_.columns); ++i) {
    const long column = PyLong_AsLong(PyTuple_GET_ITEM(form_.columns, i));
    if (column == -1 && PyErr_Occurred()) return false;
    if (column < kDigest || column >= kNumbers) {
      PyErr_Format(PyExc_ValueError, "write: there is no column %ld", column);
      return false;
    }
    columns_.push_back(static_cast<int>(column));
    has_digests_ = has_digests_ || column == kDigest;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(form_.gauges); ++i) {
    PyObject *dtype, *plan;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(form_.gauges, i), "OO!:write", &dtype, PlanType, &plan)) return false;
    const Plan* p = reinterpret_cast<Plan*>(plan);
    if (p->kind != kKernel || p->device != kHost || p->n_out != 1 || p->out[0].dtype != MYC_F64 || p->out[0].size != kNumbers) {
      PyErr_Format(PyExc_ValueError, "write: a gauge must be a kernel of the host that gives %d float64", kNumbers);
      return false;
    }
    const int32_t code = dtype_code(dtype);
    if (code < 0) return false;
    gauge_of_[code] = p;
  }
  return true;
}

// group: (kind, full name, stamp of the first tensor, inputs, outputs, ...)
bool Batch::take_group(PyObject* group, PyObject* long_names) {
  if (!PyTuple_Check(group) || PyTuple_GET_SIZE(group) < 5) {
    PyErr_SetString(PyExc_TypeError, "write: a group must be a tuple of kind, name, stamp, inputs and outputs");
    return false;
  }
  int64_t stamp = PyLong_AsLongLong(PyTuple_GET_ITEM(group, 2));
  if (stamp == -1 && PyErr_Occurred()) return false;
  PyObject* of[2] = {PyTuple_GET_ITEM(group, 0), PyTuple_GET_ITEM(group, 1)};
  PyObject* names = keep(PyObject_Vectorcall(form_.names, of, 2, nullptr));
  PyObject *head, *stem;
  if (!names || !PyArg_ParseTuple(names, "UU:write", &head, &stem)) return false;
  const std::string begin = text_of(stem);
  return !PyErr_Occurred() && take_tensors(PyTuple_GET_ITEM(group, 3), "input", begin, head, &stamp, long_names) &&
         take_tensors(PyTuple_GET_ITEM(group, 4), "output", begin, head, &stamp, long_names);
}

bool Batch::take_tensors(PyObject* tensors, const char* io, const std::string& stem, PyObject* head, int64_t* stamp, PyObject* long_names) {
  PyObject* all = keep(PySequence_Fast(tensors, "write: tensors must come in a list"));
  if (!all) return false;
  for (Py_ssize_t slot = 0; slot < PySequence_Fast_GET_SIZE(all); ++slot) {
    PyObject* object = PySequence_Fast_GET_ITEM(all, slot);
    if (object == Py_None) continue;
    size_t place;
    if (!find_content(object, &place)) return false;
    const char* const gap = form_.raw ? "_" : ".";
    std::string name = stem;
    name.reserve(kLongestName);
    if (!form_.raw) name += stamp_text(*stamp);
    name += gap;
    name += io;
    name += gap + std::to_string(slot) + text_of(PyTuple_GET_ITEM(contents_[place].description, 0));
    if (name.size() > kLongestName) {
      OwnedRef full(PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
      OwnedRef fit(full ? PyObject_CallOneArg(form_.fitting, full.p) : nullptr);
      OwnedRef both(fit ? PyTuple_Pack(2, fit.p, full.p) : nullptr);
      if (!both || PyList_Append(long_names, both.p) < 0) return false;
      name = text_of(fit.p);
    }
    if (PyErr_Occurred()) return false;
    if (form_.raw) {  // an operator that runs again in a loop has the same names again
      const auto found = file_of_.find(name);
      if (found != file_of_.end()) files_[found->second].is_replaced = true;
      file_of_[name] = files_.size();
    }
    files_.push_back({std::move(name), head, (*stamp)++, io, slot, place, false});
  }
  return true;
}

bool Batch::find_content(PyObject* object, size_t* place) {
  if (!is_tensor(object) || !as_tensor(object)->storage) {
    PyErr_Format(PyExc_TypeError, "write: a Tensor with a value or None is expected, but got %s", Py_TYPE(object)->tp_name);
    return false;
  }
  const myc_tensor& t = as_tensor(object)->t;
  std::string type(reinterpret_cast<const char*>(&t.dtype), sizeof t.dtype);
  type.append(reinterpret_cast<const char*>(t.shape), sizeof(int64_t) * static_cast<size_t>(t.rank));
  std::string key = type;
  key.append(reinterpret_cast<const char*>(&t.data), sizeof t.data);
  key.push_back(static_cast<char>(as_tensor(object)->storage->device));  // whose addresses are numbers of its own
  const auto found = place_of_.emplace(std::move(key), contents_.size());
  *place = found.first->second;
  if (!found.second) return true;
  Content c = {};
  const Storage* storage = as_tensor(object)->storage;
  // Of raw files another content may have taken the name since.
  if (!form_.raw && has_stamp(storage)) {
    c.key = found.first->first;
    c.key.append(reinterpret_cast<const char*>(&storage->stamp), sizeof storage->stamp);
    const auto known = known_->number_of.find(c.key);
    c.is_known = known != known_->number_of.end();
    if (c.is_known) c.number = known->second;
  }
  if (!c.is_known) {
    c.number = known_->tails.size();
    known_->tails.emplace_back();
  }
  if (!take_content(object, type, &c)) return false;
  contents_.push_back(std::move(c));
  return true;
}

bool Batch::take_content(PyObject* object, const std::string& type, Content* c) {
  const Tensor* tensor = as_tensor(object);
  c->tensor = keep(Py_NewRef(object));
  c->value = &tensor->t;
  OwnedRef key(PyBytes_FromStringAndSize(type.data(), static_cast<Py_ssize_t>(type.size())));
  if (!key) return false;
  c->description = PyDict_GetItemWithError(form_.described, key.p);
  if (c->description) {
    Py_INCREF(c->description);
    keep(c->description);
  } else {
    if (PyErr_Occurred() || !keep(c->description = PyObject_CallOneArg(form_.describe, object))) return false;
    PyObject *ending, *cells, *header;
    if (!PyArg_ParseTuple(c->description, "UUS:write", &ending, &cells, &header)) return false;
    if (PyDict_SetItem(form_.described, key.p, c->description) < 0) return false;
  }
  c->data = tensor->t.data;
  c->bytes = static_cast<size_t>(tensor->t.size * kItemSize[tensor->t.dtype]);
  const bool is_here = tensor->storage->device == kHost;
  if (has_files_ && (!is_here || tensor->t.dtype == MYC_BF16)) {
    OwnedRef array(PyObject_CallOneArg(form_.array, object));
    Py_buffer view;
    if (!array || PyObject_GetBuffer(array.p, &view, PyBUF_SIMPLE) != 0) return false;
    views_.push_back(view);
    c->data = view.buf;
    c->bytes = static_cast<size_t>(view.len);
  }
  bytes_ += c->bytes;
  if (has_digests_ && !c->is_known) {
    c->digests = keep(PyObject_CallOneArg(form_.digests, object));
    if (!c->digests || !PyTuple_Check(c->digests)) return false;
  }
  if (is_here) c->gauge = gauge_of_[tensor->t.dtype];
  return true;
}

// All numbers before all files: threads of kernels that wait for work spin, and would do so beside each file. For little it does not
// pay to wake them.
void Batch::count() {
  size_t bytes = 0;
  for (const Content& c : contents_) bytes += c.is_known ? 0 : c.bytes;
  for (Content& c : contents_) {
    if (!c.gauge || c.is_known || columns_.empty()) continue;
    myc_tensor row = c.gauge->out[0];
    row.data = c.numbers;
    const myc_tensor* in[1] = {c.value};
    myc_tensor* out[1] = {&row};
    myc_context* const context = c.gauge->context();
    if (bytes < kWorthThreads) context->threads = 1;
    const myc_call call = {in, out, nullptr, context, 1, 1};
    c.is_counted = c.gauge->fn(&call) == MYC_OK;
  }
}

// The numbers that no kernel gave.
bool Batch::count_rest() {
  if (columns_.empty()) return true;
  for (Content& c : contents_) {
    if (c.is_counted || c.is_known) continue;
    OwnedRef numbers(PyObject_CallOneArg(form_.numbers, c.tensor));
    OwnedRef all(numbers ? PySequence_Fast(numbers.p, "write: numbers must come in a sequence") : nullptr);
    if (!all) return false;
    if (PySequence_Fast_GET_SIZE(all.p) != kNumbers) {
      PyErr_Format(PyExc_ValueError, "write: %d numbers are expected", kNumbers);
      return false;
    }
    for (int i = 0; i < kNumbers; ++i) c.numbers[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(all.p, i));
    if (PyErr_Occurred()) return false;
  }
  return true;
}

void Batch::put_tail(const Content& c, std::string* tail) const {
  *tail = "," + text_of(PyTuple_GET_ITEM(c.description, 1));
  Py_ssize_t digest = 0;
  for (int column : columns_) {
    if (column != kDigest) {
      put_number(c.numbers[column], column < kFirstFloat || column >= kFirstFloat + kFloats, tail);
    } else if (digest < PyTuple_GET_SIZE(c.digests)) {
      *tail += "," + text_of(PyTuple_GET_ITEM(c.digests, digest++));
    }
  }
  *tail += "\n";
}

PyObject* Batch::rows() {
  std::string found;
  if (!columns_.empty()) {
    for (const Content& c : contents_)
      if (!c.is_known) put_tail(c, &known_->tails[c.number]);
    for (const File& file : files_) {
      found += text_of(file.head);
      found += ',' + stamp_text(file.stamp) + ',' + file.io + ',' + std::to_string(file.slot);
      found += known_->tails[contents_[file.content].number];
    }
    if (PyErr_Occurred()) return nullptr;
  }
  return PyBytes_FromStringAndSize(found.data(), static_cast<Py_ssize_t>(found.size()));
}

PyObject* Batch::describe(PyObject* groups, PyObject* long_names) {
  if (!take_gauges()) return nullptr;
  const size_t expected = 4 * static_cast<size_t>(PyList_GET_SIZE(groups));  // tensors, more or less
  files_.reserve(expected);
  contents_.reserve(expected);
  place_of_.reserve(expected);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(groups); ++i)
    if (!take_group(PyList_GET_ITEM(groups, i), long_names)) return nullptr;
  PyThreadState* state = PyEval_SaveThread();
  count();
  PyEval_RestoreThread(state);
  PyObject* found = count_rest() ? rows() : nullptr;
  if (!found) return nullptr;
  for (Content& c : contents_)
    if (!c.is_known && !c.key.empty()) known_->number_of.emplace(std::move(c.key), c.number);
  return found;
}

int Batch::write(DumpFolder* folder, std::vector<std::string>* firsts) const {
  for (const File& file : files_) {
    if (file.is_replaced) continue;
    const Content& c = contents_[file.content];
    if (firsts->size() <= c.number) firsts->resize(c.number + 1);
    std::string& first = (*firsts)[c.number];
    if (!first.empty()) {
      const int error = folder->link(first.c_str(), file.name.c_str());
      if (!error) continue;
      if (!DumpFolder::means_no_links(error)) return error;
    }
    const PyObject* header = PyTuple_GET_ITEM(c.description, 2);
    const FileContent content = {PyBytes_AS_STRING(header), static_cast<size_t>(PyBytes_GET_SIZE(header)), c.data, c.bytes};
    if (const int error = folder->make(file.name.c_str(), content)) return error;
    first = file.name;
  }
  return 0;
}

}  // namespace mycelia
