#include "http2.h"

#include <dlfcn.h>

namespace mycelia::serving::http2 {

std::string load(const char* path, Library* library) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return dlerror();
  const char* missing = nullptr;
  const auto find = [&](auto** function, const char* name) {
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(dlsym(handle, name));
    if (!*function) missing = name;
  };
  Library l;
  find(&l.callbacks_new, "nghttp2_session_callbacks_new");
  find(&l.callbacks_del, "nghttp2_session_callbacks_del");
  find(&l.set_on_begin_headers, "nghttp2_session_callbacks_set_on_begin_headers_callback");
  find(&l.set_on_header, "nghttp2_session_callbacks_set_on_header_callback");
  find(&l.set_on_data_chunk, "nghttp2_session_callbacks_set_on_data_chunk_recv_callback");
  find(&l.set_on_frame_recv, "nghttp2_session_callbacks_set_on_frame_recv_callback");
  find(&l.set_on_frame_send, "nghttp2_session_callbacks_set_on_frame_send_callback");
  find(&l.set_on_stream_close, "nghttp2_session_callbacks_set_on_stream_close_callback");
  find(&l.option_new, "nghttp2_option_new");
  find(&l.option_del, "nghttp2_option_del");
  find(&l.option_no_closed_streams, "nghttp2_option_set_no_closed_streams");
  find(&l.server_new, "nghttp2_session_server_new2");
  find(&l.session_del, "nghttp2_session_del");
  find(&l.receive, "nghttp2_session_mem_recv");
  find(&l.send, "nghttp2_session_mem_send");
  find(&l.want_read, "nghttp2_session_want_read");
  find(&l.want_write, "nghttp2_session_want_write");
  find(&l.submit_settings, "nghttp2_submit_settings");
  find(&l.set_local_window, "nghttp2_session_set_local_window_size");
  find(&l.submit_response, "nghttp2_submit_response");
  find(&l.submit_trailer, "nghttp2_submit_trailer");
  find(&l.submit_reset, "nghttp2_submit_rst_stream");
  find(&l.submit_goaway, "nghttp2_submit_goaway");
  find(&l.terminate, "nghttp2_session_terminate_session");
  find(&l.last_stream, "nghttp2_session_get_last_proc_stream_id");
  find(&l.resume_data, "nghttp2_session_resume_data");
  find(&l.stream_data, "nghttp2_session_get_stream_user_data");
  find(&l.set_stream_data, "nghttp2_session_set_stream_user_data");
  if (missing) {
    dlclose(handle);
    return std::string(path) + " has no " + missing;
  }
  *library = l;  // the library stays loaded
  return "";
}

}  // namespace mycelia::serving::http2
