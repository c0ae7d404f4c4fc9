// Handles of the C interface: numbers that are given once, so that one that was freed is known as such.
#ifndef MYCELIA_LITE_HANDLES_H_
#define MYCELIA_LITE_HANDLES_H_

#include <memory>

namespace mycelia::lite {

// A handle of the object, which lives until the handle is withdrawn and nobody uses it any more.
void* publish_object(const void* kind, std::shared_ptr<void> object);
std::shared_ptr<void> find_object(const void* kind, void* handle);  // null: freed, or of another kind
std::shared_ptr<void> withdraw_object(const void* kind, void* handle);

template <class T>
inline constexpr char kKind = 0;  // its address tells types apart

template <class T>
void* publish(std::shared_ptr<T> object) {
  return publish_object(&kKind<T>, std::move(object));
}
template <class T>
std::shared_ptr<T> find(void* handle) {
  return std::static_pointer_cast<T>(find_object(&kKind<T>, handle));
}
template <class T>
std::shared_ptr<T> withdraw(void* handle) {
  return std::static_pointer_cast<T>(withdraw_object(&kKind<T>, handle));
}

}  // namespace mycelia::lite

#endif
