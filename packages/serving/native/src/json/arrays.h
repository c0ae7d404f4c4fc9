// Large JSON without Python objects for its numbers: long arrays of numbers and booleans are taken out of a document and
// converted, and the small document that is left is read by others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mycelia::serving::json {

// What the elements of an array are, and what they become.
enum Kind : char {
  kBool = '?',     // true and false: a byte each
  kInt32 = 'i',    // integers that all fit
  kInt64 = 'q',
  kUint64 = 'Q',
  kHuge = 'h',     // integers that fit nowhere: doubles when wide, else no data
  kFloat = 'f',    // numbers with a point or an exponent, when narrow
  kDouble = 'd',   // the same when wide
  kTooLarge = 'F', // such with one that float does not hold, when narrow: no data
  kMixed = 'm',    // integers and numbers with a point: doubles when wide, else no data
};

struct Array {
  Kind kind;
  std::vector<int64_t> shape;
  std::unique_ptr<uint8_t[]> data;
  size_t size = 0;  // bytes
};

struct Document {
  std::string text;           // the document with {"MARK": N} in the place of arrays[N]
  std::vector<Array> arrays;
  size_t values = 0;          // in text, about
  size_t marked_keys = 0;     // of the outermost object: those equal to `key`, and those with an escape
  bool long_integers = false; // text has an integer of 19 digits or more
  bool infinite = false;      // an array has a number that no double holds
};

// Takes out the rectangular arrays of at least `least` elements, of which none nests deeper than 32 levels. What is wrong
// in the document stays in its text. narrow: numbers become 32 bits wide. Stops when there are more than `most` values.
// Two passes at most over any part of the body.
Document take_arrays(std::string_view body, std::string_view mark, std::string_view key, size_t least, bool narrow, size_t most);

}  // namespace mycelia::serving::json
