// Tensors of a data dump on their way to files and rows of statistic.csv.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "core.h"
#include "dump_folder.h"

namespace mycelia {

// How tensors become files and rows: `settings` of StepFiles.write. All references are borrowed.
struct Form {
  int raw;              // the layout of MindSpore 1.1: bytes without a header, names without a time
  PyObject* columns;    // tuple: which of the numbers a row has, or -1 for a digest
  PyObject* gauges;     // tuple of (dtype, Plan): kernels that give these numbers
  PyObject* names;      // (kind, full name) -> (what rows begin with, what names of files begin with)
  PyObject* described;  // dict: bytes of dtype and shape -> what the next one returned for them
  PyObject* describe;   // (tensor) -> (end of its name, cells of its row, header)
  PyObject* array;      // (tensor) -> array as its file has it, where that is not the tensor's memory
  PyObject* numbers;    // (tensor) -> its numbers, where no kernel gives them
  PyObject* digests;    // (tensor) -> the texts of columns that are digests, in order
  PyObject* fitting;    // (name) -> a shorter one

  bool parse(PyObject* settings);  // false with an exception set
};

// What the files of a step hold so far: memory that nobody has written into since need not be described and written again.
struct Known {
  std::unordered_map<std::string, size_t> number_of;  // dtype, shape, address and stamp -> number of the content
  std::vector<std::string> tails;                     // what rows of a content end in, by its number
};

// Tensors that are described and written together. Made, described and destroyed with the interpreter's lock.
class Batch {
 public:
  // `form` and `known` are for `describe`.
  Batch(const Form& form, bool has_files, Known* known) : form_(form), has_files_(has_files), known_(known) {}
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Takes the tensors of `groups`, and gives their lines of statistic.csv, in UTF-8. NULL with an exception set.
  PyObject* describe(PyObject* groups, PyObject* long_names);

  // Without the interpreter's lock: the files; 0, or the errno with which it ended. `firsts`: of the contents of the step the file that
  // holds it, by number.
  int write(DumpFolder* folder, std::vector<std::string>* firsts) const;

  size_t bytes() const { return bytes_; }  // that its tensors hold

 private:
  static constexpr int kNumbers = 11;  // of tensor_statistics

  // What a tensor holds. Tensors that share memory, dtype and shape share it.
  struct Content {
    PyObject* tensor;
    PyObject* description;  // tuple
    PyObject* digests;      // tuple, or NULL
    const myc_tensor* value;
    const void* data;
    size_t bytes;
    const Plan* gauge;
    bool is_known;  // an earlier batch has it
    bool is_counted;
    double numbers[kNumbers];
    size_t number;    // among those of the step
    std::string key;  // in Known; empty where others may write into the memory
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

  bool take_gauges();
  bool take_group(PyObject* group, PyObject* long_names);
  bool take_tensors(PyObject* tensors, const char* io, const std::string& stem, PyObject* head, int64_t* stamp, PyObject* long_names);
  bool find_content(PyObject* object, size_t* place);
  bool take_content(PyObject* object, const std::string& type, Content* c);
  void count();
  bool count_rest();
  void put_tail(const Content& c, std::string* tail) const;
  PyObject* rows();
  PyObject* keep(PyObject* o) {  // as long as the batch
    if (o) kept_.v.push_back(o);
    return o;
  }

  const Form form_;
  const bool has_files_;
  Known* const known_;
  const Plan* gauge_of_[MYC_DTYPE_COUNT] = {};
  std::vector<int> columns_;
  bool has_digests_ = false;
  std::vector<Content> contents_;
  std::vector<File> files_;
  std::unordered_map<std::string, size_t> place_of_, file_of_;
  std::vector<Py_buffer> views_;
  Tensors kept_;
  size_t bytes_ = 0;
};

}  // namespace mycelia
