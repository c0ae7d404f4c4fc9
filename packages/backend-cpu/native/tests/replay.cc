// Calls kernels of one variant on recorded inputs: what tests/test_replay.py checks, also for processors that are not
// the host's (through an emulator).
//
//   replay best                          the variant that a host program gets here
//   replay <isa> list                    one line per kernel: op, dtypes, flags
//   replay <isa> <threads> <in> <out>    the calls of file <in>; results go to file <out>
//
// File <in> is a row of int64: the number of calls, then per call
//   kernel (index in the table), bytes of the attributes, the attributes, number of inputs, inputs, number of outputs,
//   outputs.  An input: dtype (-1: absent), rank, shape, data.  An output: dtype, rank, shape, number of the input whose
//   memory it is (-1: its own).  Attributes and data are filled up to a multiple of 8 bytes.
// File <out>: per call the kernel's result code and, if that is 0, the data of its outputs, filled up likewise.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "mycelia/cpu.h"

namespace {

constexpr int64_t kGuard = 64;  // bytes behind each tensor that no kernel may write
constexpr char kGuardByte = 0x5a;
constexpr int64_t item_sizes[MYC_DTYPE_COUNT] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};

int64_t whole_words(int64_t bytes) { return (bytes + 7) / 8 * 8; }

[[noreturn]] void stop(const char* why) {
  fprintf(stderr, "replay: %s\n", why);
  exit(2);
}

struct Reader {
  std::vector<char> bytes;
  int64_t at = 0;

  explicit Reader(const char* path) {
    FILE* file = fopen(path, "rb");
    if (file == nullptr) stop("the file of calls cannot be opened");
    char part[1 << 14];
    for (size_t n; (n = fread(part, 1, sizeof(part), file)) > 0;) bytes.insert(bytes.end(), part, part + n);
    fclose(file);
  }

  const char* take(int64_t count) {
    if (count < 0 || at + whole_words(count) > static_cast<int64_t>(bytes.size())) stop("the file of calls is cut off");
    const char* p = bytes.data() + at;
    at += whole_words(count);
    return p;
  }

  int64_t number() {
    int64_t value;
    memcpy(&value, take(8), 8);
    return value;
  }
};

int64_t byte_count(const myc_tensor& t) { return t.size * item_sizes[t.dtype]; }

// dtype, rank and shape; the data stays null.
myc_tensor read_type(Reader& in) {
  myc_tensor t = {};
  t.dtype = static_cast<int32_t>(in.number());
  if (t.dtype < 0) return t;
  t.rank = static_cast<int32_t>(in.number());
  if (t.dtype >= MYC_DTYPE_COUNT || t.rank < 0 || t.rank > MYC_MAX_RANK) stop("no such dtype or rank");
  t.size = 1;
  for (int32_t d = 0; d < t.rank; ++d) t.size *= t.shape[d] = in.number();
  return t;
}

void* guarded(int64_t bytes) {
  char* p = static_cast<char*>(aligned_alloc(64, static_cast<size_t>((bytes + kGuard + 63) / 64 * 64)));
  if (p == nullptr) stop("memory is exhausted");
  memset(p, kGuardByte, static_cast<size_t>(bytes + kGuard));
  return p;
}

bool guard_is_whole(const myc_tensor& t) {
  const char* end = static_cast<const char*>(t.data) + byte_count(t);
  for (int64_t i = 0; i < kGuard; ++i) {
    if (end[i] != kGuardByte) return false;
  }
  return true;
}

void replay_one(const myc_kernel_table& table, int64_t number, Reader& in, FILE* out) {
  const int64_t index = in.number();
  if (index < 0 || index >= table.count) stop("no such kernel");
  const myc_kernel& kernel = table.kernels[index];
  const int64_t attr_bytes = in.number();
  const char* attrs = in.take(attr_bytes);

  std::vector<myc_tensor> inputs(static_cast<size_t>(in.number()));
  std::vector<const char*> originals(inputs.size());
  std::vector<bool> reused(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = read_type(in);
    if (inputs[i].dtype < 0) continue;
    const int64_t bytes = byte_count(inputs[i]);
    originals[i] = in.take(bytes);
    inputs[i].data = guarded(bytes);
    memcpy(inputs[i].data, originals[i], static_cast<size_t>(bytes));
  }
  std::vector<myc_tensor> outputs(static_cast<size_t>(in.number()));
  std::vector<bool> own(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = read_type(in);
    if (outputs[i].dtype < 0) stop("an output has no dtype");
    const int64_t from = in.number();
    own[i] = from < 0;
    if (own[i]) {
      outputs[i].data = guarded(byte_count(outputs[i]));
    } else {
      if (from >= static_cast<int64_t>(inputs.size()) || byte_count(inputs[from]) != byte_count(outputs[i])) {
        stop("an output cannot have that input's memory");
      }
      outputs[i].data = inputs[from].data;
      reused[from] = true;
    }
  }

  std::vector<const myc_tensor*> in_pointers;
  std::vector<myc_tensor*> out_pointers;
  for (const myc_tensor& t : inputs) in_pointers.push_back(t.dtype < 0 ? nullptr : &t);
  for (myc_tensor& t : outputs) out_pointers.push_back(&t);
  myc_context* ctx = table.context();
  const myc_call call = {in_pointers.data(), out_pointers.data(), attrs, ctx, static_cast<int32_t>(inputs.size()),
                         static_cast<int32_t>(outputs.size())};
  const int64_t code = kernel.fn(&call);

  bool good = ctx->scratch_used == 0;
  if (!good) fprintf(stderr, "call %d, %s(%s): scratch memory was not given back\n", (int)number, kernel.op, kernel.dtypes);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype < 0) continue;
    const bool untouched = reused[i] || memcmp(inputs[i].data, originals[i], static_cast<size_t>(byte_count(inputs[i]))) == 0;
    if (untouched && guard_is_whole(inputs[i])) continue;
    fprintf(stderr, "call %d, %s(%s): input %d was written\n", (int)number, kernel.op, kernel.dtypes, (int)i);
    good = false;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (guard_is_whole(outputs[i])) continue;
    fprintf(stderr, "call %d, %s(%s): memory behind output %d was written\n", (int)number, kernel.op, kernel.dtypes, (int)i);
    good = false;
  }
  if (!good) exit(1);

  fwrite(&code, 8, 1, out);
  const char zeros[8] = {};
  for (const myc_tensor& t : outputs) {
    const int64_t bytes = byte_count(t);
    if (code != MYC_OK) break;
    fwrite(t.data, 1, static_cast<size_t>(bytes), out);
    fwrite(zeros, 1, static_cast<size_t>(whole_words(bytes) - bytes), out);
  }
  for (const myc_tensor& t : inputs) free(t.data);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (own[i]) free(outputs[i].data);
  }
}

}  // namespace

int main(int count, char** argument) {
  if (count != 2 && count != 3 && count != 5) stop("expected: best, or <isa> list, or <isa> <threads> <in> <out>");
  const myc_kernel_table* table = myc_cpu_kernel_table(count == 2 ? nullptr : argument[1]);
  if (count == 2) {
    puts(table == nullptr ? "none" : table->isa);
    return 0;
  }
  if (table == nullptr || strcmp(table->isa, argument[1]) != 0) stop("this variant was not built, or cannot run here");
  if (count == 3) {
    for (uint32_t i = 0; i < table->count; ++i) {
      printf("%s %s %u\n", table->kernels[i].op, table->kernels[i].dtypes, table->kernels[i].flags);
    }
    return 0;
  }
  table->set_threads(atoi(argument[2]));
  Reader in(argument[3]);
  FILE* out = fopen(argument[4], "wb");
  if (out == nullptr) stop("the file of results cannot be written");
  const int64_t calls = in.number();
  for (int64_t i = 0; i < calls; ++i) replay_one(*table, i, in, out);
  return fclose(out) == 0 ? 0 : 2;
}
