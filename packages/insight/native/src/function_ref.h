// A function that lives elsewhere, as long as it is called: std::function without a copy. For parameters only: a lambda that is
// assigned to one is gone behind the statement.
#pragma once
#include <type_traits>
#include <utility>

namespace mycelia::insight {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(const F& f)  // NOLINT: a lambda becomes one where it is handed over
      : object_(&f), call_([](const void* object, Args... args) -> R { return (*static_cast<const F*>(object))(std::forward<Args>(args)...); }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  const void* object_;
  R (*call_)(const void*, Args...);
};

}  // namespace mycelia::insight
