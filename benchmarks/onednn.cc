// One convolution of oneDNN in the layouts that it chooses itself; onednn.py compiles this.
#include <memory>
#include <unordered_map>

#include "dnnl.hpp"

using namespace dnnl;

namespace {

struct Run {
  primitive what;
  std::unordered_map<int, memory> arguments;
};

const engine& processor() {
  static const engine made(engine::kind::cpu, 0);
  return made;
}

memory filled(const memory::desc& shape) {
  memory made(shape, processor());
  auto* values = static_cast<float*>(made.get_data_handle());
  for (size_t i = 0; i < shape.get_size() / sizeof(float); ++i) values[i] = 0.1f * static_cast<float>(i % 17) - 0.8f;
  return made;
}

}  // namespace

// direction: 0 forward, 1 gradient of the data, 2 of the weights.
extern "C" void* make(int inputs, int outputs, int height, int width, int kernel, int stride, int groups, int pad,
                      int direction) {
  const auto any = memory::format_tag::any;
  const auto f32 = memory::data_type::f32;
  const memory::dim oh = (height + 2 * pad - kernel) / stride + 1, ow = (width + 2 * pad - kernel) / stride + 1;
  const memory::desc x({1, inputs, height, width}, f32, any), y({1, outputs, oh, ow}, f32, any);
  const memory::desc w(groups > 1 ? memory::dims{groups, outputs / groups, inputs / groups, kernel, kernel}
                                  : memory::dims{outputs, inputs, kernel, kernel}, f32, any);
  const memory::dims strides{stride, stride}, pads{pad, pad};
  const auto direct = algorithm::convolution_direct;
  const convolution_forward::primitive_desc forward(processor(), prop_kind::forward_training, direct, x, w, y, strides,
                                                    pads, pads);
  if (direction == 0) {
    return new Run{convolution_forward(forward),
                   {{DNNL_ARG_SRC, filled(forward.src_desc())}, {DNNL_ARG_WEIGHTS, filled(forward.weights_desc())},
                    {DNNL_ARG_DST, filled(forward.dst_desc())}}};
  }
  if (direction == 1) {
    const convolution_backward_data::primitive_desc p(processor(), direct, x, w, y, strides, pads, pads, forward);
    return new Run{convolution_backward_data(p),
                   {{DNNL_ARG_DIFF_SRC, filled(p.diff_src_desc())}, {DNNL_ARG_WEIGHTS, filled(p.weights_desc())},
                    {DNNL_ARG_DIFF_DST, filled(p.diff_dst_desc())}}};
  }
  const convolution_backward_weights::primitive_desc p(processor(), direct, x, w, y, strides, pads, pads, forward);
  return new Run{convolution_backward_weights(p),
                 {{DNNL_ARG_SRC, filled(p.src_desc())}, {DNNL_ARG_DIFF_WEIGHTS, filled(p.diff_weights_desc())},
                  {DNNL_ARG_DIFF_DST, filled(p.diff_dst_desc())}}};
}

extern "C" void run(void* handle) {
  static stream made(processor());
  auto* self = static_cast<Run*>(handle);
  self->what.execute(made, self->arguments);
  made.wait();
}
