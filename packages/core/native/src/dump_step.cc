// The tensors of a step of a data dump: names, headers, statistics and files of all of them in one call, since Python between them
// costs more than the files. What names and descriptions look like is said in Python (mycelia/debug/dump/tensor_files.py).
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <unordered_map>
#include <vector>

#include "core.h"

namespace mycelia {
namespace {

constexpr int kNumbers = 11;                 // of tensor_statistics
constexpr int kFirstFloat = 1, kFloats = 4;  // of these: extremes, mean and norm; the others are counts
constexpr int kDigest = -1;                  // a column that Python fills
constexpr size_t kWorthThreads = 16 << 20;   // bytes: about half a millisecond of one core
constexpr size_t kStampDigits = 16;
constexpr Py_ssize_t kLongestName = 255;     // bytes that file systems take

// How tensors become files and rows: `settings` of write_step. All references are borrowed.
struct Form {
  int raw;              // the layout of MindSpore 1.1: bytes without a header, names without a time
  PyObject* columns;    // tuple: which of the numbers a row has, or kDigest
  PyObject* gauges;     // tuple of (dtype, Plan): kernels that give these numbers
  PyObject* names;      // (kind, full name) -> (what rows begin with, what names of files begin with)
  PyObject* described;  // dict: bytes of dtype and shape -> what the next one returned for them
  PyObject* describe;   // (tensor) -> (end of its name, cells of its row, header)
  PyObject* array;      // (tensor) -> array as its file has it, where that is not the tensor's memory
  PyObject* numbers;    // (tensor) -> its numbers, where no kernel gives them
  PyObject* digests;    // (tensor) -> the texts of columns that are digests, in order
  PyObject* fitting;    // (name) -> a shorter one
};

// What a tensor holds. Tensors that share memory, dtype and shape share it.
struct Content {
  PyObject* tensor;       // borrowed
  PyObject* description;  // tuple
  PyObject* digests;      // tuple, or NULL
  const myc_tensor* value;
  const void* data;
  size_t bytes;
  const Plan* gauge;
  bool is_counted;
  double numbers[kNumbers];
  Py_ssize_t first;  // file that has it, or -1
};

struct File {
  std::string name;
  PyObject* head;  // str: what its row begins with
  int64_t stamp;
  const char* io;
  Py_ssize_t slot;
  size_t content;
  bool is_replaced;  // by a later one of its name
};

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

// ---- files -----------------------------------------------------------------------------------------------------------------

bool write_all(int file, iovec* part, int count) {
  while (count) {
    const ssize_t done = writev(file, part, count);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    size_t rest = static_cast<size_t>(done);
    while (count && rest >= part->iov_len) {
      rest -= part->iov_len;
      ++part;
      --count;
    }
    if (!count) break;
    part->iov_base = static_cast<char*>(part->iov_base) + rest;
    part->iov_len -= rest;
  }
  return true;
}

// A new file in place of any of this name. False with errno set, and no such file is left then.
bool write_new(int folder, const char* name, PyObject* header, const void* data, size_t bytes) {
  const auto open_new = [&] { return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); };
  int file = open_new();
  if (file < 0 && errno == EEXIST && unlinkat(folder, name, 0) == 0) file = open_new();
  if (file < 0) return false;
  iovec parts[2] = {{PyBytes_AS_STRING(header), static_cast<size_t>(PyBytes_GET_SIZE(header))}, {const_cast<void*>(data), bytes}};
  bool ok = write_all(file, parts, 2);
  int error = errno;
  if (close(file) != 0 && ok && errno != EINTR) {
    ok = false;
    error = errno;
  }
  if (ok) return true;
  unlinkat(folder, name, 0);
  errno = error;
  return false;
}

// Whether file systems that have no links, or not so many, say so like this.
bool means_no_links(int error) {
  return error == EPERM || error == EOPNOTSUPP || error == EMLINK || error == ENOSYS || error == EXDEV;
}

// ---- a step ----------------------------------------------------------------------------------------------------------------

class Step {
 public:
  Step(const Form& form, int folder) : form_(form), folder_(folder) {}
  ~Step() {
    for (Py_buffer& view : views_) PyBuffer_Release(&view);
  }

  bool prepare(PyObject* groups, PyObject* long_names);
  void count();           // without the interpreter's lock
  int write();            // likewise; 0, or the errno with which it ended
  bool count_rest();
  PyObject* rows() const;

 private:
  bool take_gauges();
  bool take_group(PyObject* group, PyObject* long_names);
  bool take_tensors(PyObject* tensors, const char* io, const std::string& stem, PyObject* head, int64_t* stamp, PyObject* long_names);
  bool find_content(PyObject* object, size_t* place);
  bool take_content(PyObject* object, const std::string& type, Content* c);
  PyObject* keep(PyObject* o) {  // until the end of the call
    if (o) kept_.v.push_back(o);
    return o;
  }

  const Form& form_;
  const int folder_;  // -1: no files are written
  const Plan* gauge_of_[MYC_DTYPE_COUNT] = {};
  std::vector<int> columns_;
  bool has_digests_ = false;
  std::vector<Content> contents_;
  std::vector<File> files_;
  std::unordered_map<std::string, size_t> place_of_, file_of_;
  std::vector<Py_buffer> views_;
  Tensors kept_;
};

bool Step::take_gauges() {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(form_.columns); ++i) {
    const long column = PyLong_AsLong(PyTuple_GET_ITEM(form_.columns, i));
    if (column == -1 && PyErr_Occurred()) return false;
    if (column < kDigest || column >= kNumbers) {
      PyErr_Format(PyExc_ValueError, "write_step: there is no column %ld", column);
      return false;
    }
    columns_.push_back(static_cast<int>(column));
    has_digests_ = has_digests_ || column == kDigest;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(form_.gauges); ++i) {
    PyObject *dtype, *plan;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(form_.gauges, i), "OO!:write_step", &dtype, PlanType, &plan)) return false;
    const Plan* p = reinterpret_cast<Plan*>(plan);
    if (p->kind != kKernel || p->device != kHost || p->n_out != 1 || p->out[0].dtype != MYC_F64 || p->out[0].size != kNumbers) {
      PyErr_Format(PyExc_ValueError, "write_step: a gauge must be a kernel of the host that gives %d float64", kNumbers);
      return false;
    }
    const int32_t code = dtype_code(dtype);
    if (code < 0) return false;
    gauge_of_[code] = p;
  }
  return true;
}

bool Step::prepare(PyObject* groups, PyObject* long_names) {
  if (!take_gauges()) return false;
  const size_t expected = 4 * static_cast<size_t>(PyList_GET_SIZE(groups));  // tensors, more or less
  files_.reserve(expected);
  contents_.reserve(expected);
  place_of_.reserve(expected);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(groups); ++i)
    if (!take_group(PyList_GET_ITEM(groups, i), long_names)) return false;
  return true;
}

// group: (kind, full name, stamp of the first tensor, inputs, outputs, ...)
bool Step::take_group(PyObject* group, PyObject* long_names) {
  if (!PyTuple_Check(group) || PyTuple_GET_SIZE(group) < 5) {
    PyErr_SetString(PyExc_TypeError, "write_step: a group must be a tuple of kind, name, stamp, inputs and outputs");
    return false;
  }
  int64_t stamp = PyLong_AsLongLong(PyTuple_GET_ITEM(group, 2));
  if (stamp == -1 && PyErr_Occurred()) return false;
  PyObject* of[2] = {PyTuple_GET_ITEM(group, 0), PyTuple_GET_ITEM(group, 1)};
  PyObject* names = keep(PyObject_Vectorcall(form_.names, of, 2, nullptr));
  PyObject *head, *stem;
  if (!names || !PyArg_ParseTuple(names, "UU:write_step", &head, &stem)) return false;
  const std::string begin = text_of(stem);
  return !PyErr_Occurred() && take_tensors(PyTuple_GET_ITEM(group, 3), "input", begin, head, &stamp, long_names) &&
         take_tensors(PyTuple_GET_ITEM(group, 4), "output", begin, head, &stamp, long_names);
}

bool Step::take_tensors(PyObject* tensors, const char* io, const std::string& stem, PyObject* head, int64_t* stamp, PyObject* long_names) {
  PyObject* all = keep(PySequence_Fast(tensors, "write_step: tensors must come in a list"));
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

bool Step::find_content(PyObject* object, size_t* place) {
  if (!is_tensor(object) || !as_tensor(object)->storage) {
    PyErr_Format(PyExc_TypeError, "write_step: a Tensor with a value or None is expected, but got %s", Py_TYPE(object)->tp_name);
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
  if (!take_content(object, type, &c)) return false;
  contents_.push_back(c);
  return true;
}

bool Step::take_content(PyObject* object, const std::string& type, Content* c) {
  const Tensor* tensor = as_tensor(object);
  c->tensor = object;
  c->value = &tensor->t;
  c->first = -1;
  OwnedRef key(PyBytes_FromStringAndSize(type.data(), static_cast<Py_ssize_t>(type.size())));
  if (!key) return false;
  c->description = PyDict_GetItemWithError(form_.described, key.p);
  if (c->description) {
    Py_INCREF(c->description);
    keep(c->description);
  } else {
    if (PyErr_Occurred() || !keep(c->description = PyObject_CallOneArg(form_.describe, object))) return false;
    PyObject *ending, *cells, *header;
    if (!PyArg_ParseTuple(c->description, "UUS:write_step", &ending, &cells, &header)) return false;
    if (PyDict_SetItem(form_.described, key.p, c->description) < 0) return false;
  }
  c->data = tensor->t.data;
  c->bytes = static_cast<size_t>(tensor->t.size * kItemSize[tensor->t.dtype]);
  const bool is_here = tensor->storage->device == kHost;
  if (folder_ >= 0 && (!is_here || tensor->t.dtype == MYC_BF16)) {
    OwnedRef array(PyObject_CallOneArg(form_.array, object));
    Py_buffer view;
    if (!array || PyObject_GetBuffer(array.p, &view, PyBUF_SIMPLE) != 0) return false;
    views_.push_back(view);
    c->data = view.buf;
    c->bytes = static_cast<size_t>(view.len);
  }
  if (has_digests_) {
    c->digests = keep(PyObject_CallOneArg(form_.digests, object));
    if (!c->digests || !PyTuple_Check(c->digests)) return false;
  }
  if (is_here) c->gauge = gauge_of_[tensor->t.dtype];
  return true;
}

// All numbers before all files: threads of kernels that wait for work spin, and would do so beside each file. For little it does not
// pay to wake them.
void Step::count() {
  size_t bytes = 0;
  for (const Content& c : contents_) bytes += c.bytes;
  for (Content& c : contents_) {
    if (!c.gauge || columns_.empty()) continue;
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

int Step::write() {
  for (size_t i = 0; i < files_.size(); ++i) {
    const File& file = files_[i];
    Content& c = contents_[file.content];
    if (file.is_replaced) continue;
    if (c.first >= 0) {
      const char *known = files_[static_cast<size_t>(c.first)].name.c_str(), *name = file.name.c_str();
      if (linkat(folder_, known, folder_, name, 0) == 0) continue;
      if (errno == EEXIST && unlinkat(folder_, name, 0) == 0 && linkat(folder_, known, folder_, name, 0) == 0) continue;
      if (!means_no_links(errno)) return errno;
    }
    if (!write_new(folder_, file.name.c_str(), PyTuple_GET_ITEM(c.description, 2), c.data, c.bytes)) return errno;
    c.first = static_cast<Py_ssize_t>(i);
  }
  return 0;
}

// The numbers that no kernel gave.
bool Step::count_rest() {
  if (columns_.empty()) return true;
  for (Content& c : contents_) {
    if (c.is_counted) continue;
    OwnedRef numbers(PyObject_CallOneArg(form_.numbers, c.tensor));
    OwnedRef all(numbers ? PySequence_Fast(numbers.p, "write_step: numbers must come in a sequence") : nullptr);
    if (!all) return false;
    if (PySequence_Fast_GET_SIZE(all.p) != kNumbers) {
      PyErr_Format(PyExc_ValueError, "write_step: %d numbers are expected", kNumbers);
      return false;
    }
    for (int i = 0; i < kNumbers; ++i) c.numbers[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(all.p, i));
    if (PyErr_Occurred()) return false;
  }
  return true;
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

// A line for each tensor, in UTF-8.
PyObject* Step::rows() const {
  std::string found;
  if (!columns_.empty()) {
    std::vector<std::string> tail(contents_.size());  // the same for all tensors of a content
    for (size_t i = 0; i < contents_.size(); ++i) {
      const Content& c = contents_[i];
      tail[i] = "," + text_of(PyTuple_GET_ITEM(c.description, 1));
      Py_ssize_t digest = 0;
      for (int column : columns_) {
        if (column != kDigest) {
          put_number(c.numbers[column], column < kFirstFloat || column >= kFirstFloat + kFloats, &tail[i]);
        } else if (digest < PyTuple_GET_SIZE(c.digests)) {
          tail[i] += "," + text_of(PyTuple_GET_ITEM(c.digests, digest++));
        }
      }
      tail[i] += "\n";
    }
    for (const File& file : files_) {
      found += text_of(file.head);
      found += ',' + stamp_text(file.stamp) + ',' + file.io + ',' + std::to_string(file.slot);
      found += tail[file.content];
    }
    if (PyErr_Occurred()) return nullptr;
  }
  return PyBytes_FromStringAndSize(found.data(), static_cast<Py_ssize_t>(found.size()));
}

// write_step(folder, groups, settings, long_names)
PyObject* write_step(PyObject*, PyObject* args) {
  int folder;
  PyObject *groups, *settings, *long_names;
  Form form;
  if (!PyArg_ParseTuple(args, "iO!O!O!:write_step", &folder, &PyList_Type, &groups, &PyTuple_Type, &settings, &PyList_Type, &long_names) ||
      !PyArg_ParseTuple(settings, "pO!O!OO!OOOOO:write_step", &form.raw, &PyTuple_Type, &form.columns, &PyTuple_Type, &form.gauges, &form.names,
                        &PyDict_Type, &form.described, &form.describe, &form.array, &form.numbers, &form.digests, &form.fitting))
    return nullptr;
  Step step(form, folder);
  if (!step.prepare(groups, long_names)) return nullptr;
  PyThreadState* state = PyEval_SaveThread();
  step.count();
  const int error = folder < 0 ? 0 : step.write();
  PyEval_RestoreThread(state);
  if (error) {
    errno = error;
    return PyErr_SetFromErrno(PyExc_OSError);
  }
  return step.count_rest() ? step.rows() : nullptr;
}

PyMethodDef functions[] = {{"write_step", write_step, METH_VARARGS,
                            "write_step(folder, groups, settings, long_names): the tensors of groups (kind, name, stamp, inputs, outputs, ...)\n"
                            "as files in the folder with this descriptor (-1: none); their rows of statistic.csv, as bytes. (short, full) names\n"
                            "come to long_names. OSError leaves what was written before."},
                           {nullptr, nullptr, 0, nullptr}};

}  // namespace

int init_dump_step(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace mycelia
