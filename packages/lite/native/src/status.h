// How a step ended: a code of the converter and runtime (docs/lite.md), and one readable reason.
#ifndef MYCELIA_LITE_STATUS_H_
#define MYCELIA_LITE_STATUS_H_

#include <string>
#include <utility>

#include "message.h"

namespace mycelia::lite {

enum Code : int {
  kSuccess = 0,
  kError = -1,
  kNullPointer = -2,
  kParameterInvalid = -3,
  kMemory = -6,
  kNotSupported = -7,
  kInputTensorWrong = -101,
  kReentered = -102,
  kGraphInvalid = -200,
  kOperatorNotFound = -300,
  kOperatorAttribute = -302,
  kOperatorFailed = -303,
  kInferFailed = -500,
  kInferLater = -501,
};

struct Status {
  int code = kSuccess;
  std::string text;

  Status() = default;
  Status(int code, std::string text) : code(code), text(std::move(text)) {}
  explicit operator bool() const { return code == kSuccess; }  // all went well
};

}  // namespace mycelia::lite

#endif
