// What operators of several families share.
#ifndef MYCELIA_LITE_OPERATORS_COMMON_H_
#define MYCELIA_LITE_OPERATORS_COMMON_H_

#include <initializer_list>
#include <vector>

#include "../plan.h"
#include "../schema.h"
#include "mycelia/op_attrs.h"

namespace mycelia::lite {

// Defines an operator of operators.def: it reads the node's attributes, infers shapes and emits kernels.
#define OPERATOR(kind) void lower_##kind(Planner& p)

#define LITE_OPERATOR(kind) OPERATOR(kind);
#include "operators.def"
#undef LITE_OPERATOR

// Numbers of a file as an attribute of a kernel; fails if they are more than it holds.
myc_ints ints(Planner& p, const std::vector<int64_t>& values);
inline myc_ints ints(std::initializer_list<int64_t> values) {
  myc_ints made{};
  for (int64_t v : values) made.v[made.n++] = v;
  return made;
}

// The axis counted from the front; fails if there is none.
int axis_of(Planner& p, int64_t axis, int rank);

// Which dimensions the axes name; none after a fault.
std::vector<bool> named_axes(Planner& p, const std::vector<int64_t>& axes, int rank);

// The numbers of an attribute.
std::vector<int64_t> numbers(const Span<int64_t>& span);

// Whether a value has integers that can name places; fails otherwise.
bool are_places(Planner& p, int index);

// The one number of a value, waiting for it if it is data; 0 until it is known.
int64_t number_of(Planner& p, int value, const char* what);

// The type of an elementwise operator of two tensors; fails if they differ in dtype or cannot be broadcast as in NumPy.
Type broadcast(Planner& p, const Type& a, const Type& b);

// `size[d]` elements from `begin[d]` on, every `stride[d]`-th, which must lie inside.
int sliced(Planner& p, int x, const myc_ints& begin, const myc_ints& size, const myc_ints& stride);
// The same along one axis.
int sliced_along(Planner& p, int x, int axis, int64_t begin, int64_t size, int64_t stride = 1);

// `updates` in or added to `x` (`reduction` as kernels have it): the last axis of the indices has the first axes' places, or they are
// places along an axis.
int scattered(Planner& p, int x, int index, int updates, int64_t reduction);
int scattered_along(Planner& p, int x, int index, int updates, int64_t axis, int64_t reduction);

// x [N, T, C]: the rows that `places` name, `each` of them one behind the other: [N, places / each, each C].
int spliced(Planner& p, int x, const std::vector<int64_t>& places, int64_t each);

// The part of matrices on one side of a diagonal; `op`: tril or triu.
int triangle(Planner& p, const char* op, int x, int64_t diagonal);

// Product and mean over axes, whose sizes are 1 in `out` or, unless `keep`, not there; for dtypes beyond the kernels' too. A mean of
// integers is rounded to zero.
int product(Planner& p, int x, const myc_ints& axes, bool keep, const Type& out);
int mean(Planner& p, int x, const myc_ints& axes, bool keep, const Type& out);

// Boxes that remain where others overlap them too much: image, class and number of each, [n, 3] of int64. `score`: -1 for none.
int selected_boxes(Planner& p, int boxes, int scores, int most_of_class, int overlap, int score, bool center);

// Where a value is not 0: [rank, count] of int64.
int places_of(Planner& p, int x);

// Fails unless `bias` is absent or has `channels` elements.
void check_bias(Planner& p, int bias, int64_t channels);

// Columns of whole panels.
int64_t padded(int64_t n);

// The weights of a node, a constant of the file: where they lie in panels there, kernels take them as they are.
class Weights {
 public:
  Weights(Planner& p, size_t input);
  const Type& type() const { return type_; }
  bool is_constant() const { return panels_ >= 0 || planner_.constant(matrix_); }
  // Whether kernels can read the weights in their own order where they lie.
  bool lies_as_rows() const { return panels_ < 0 && !planner_.is_compact(matrix_); }
  int matrix();  // the value in its own order, which is computed if they lie in panels
  // Panels of a matrix [out, in] if `transposed`, else [in, out]; of a convolution's weights [O, kh, kw, I] with `transposed`.
  int panels(bool transposed);
  // Whether kernels read them as they are stored.
  bool low_bit(bool transposed, LowBit* found) { return panels_ < 0 && planner_.low_bit(input_, matrix_, transposed, found); }
  // The pack of Strassen's product of a matrix [out, in] if `transposed`, else [in, out], whose sizes are even.
  int halves(bool transposed);

 private:
  Planner& planner_;
  const size_t input_;
  int panels_ = -1, matrix_ = -1;
  Type type_;
};

// The pack of weights [columns, ...] of int8, less the zero point of each column if there is one; in a portable plan they are int16.
int integer_pack(Planner& p, int weights, int zero);

// The value after an activation without further attributes.
int activated(Planner& p, int value, int8_t activation);

// The activation as the attribute `activation` of kernels on packed weights; -1 if they do not have it.
int64_t fused_activation(int8_t activation);

}  // namespace mycelia::lite

#endif
