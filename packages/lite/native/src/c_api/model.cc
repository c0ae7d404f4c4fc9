// Models: life, shapes, runs, weights.
#include <algorithm>
#include <cstring>

#include "../crypto/gcm.h"
#include "../crypto/sealed.h"
#include "../kernels.h"
#include "model.h"

using namespace mycelia::lite;

namespace {

thread_local std::string last_error;

std::shared_ptr<Border> of_model(const std::shared_ptr<Model>& model, Border* tensor) { return {model, tensor}; }

template <class Open>
MSStatus build(MSModelHandle handle, MSModelType type, MSContextHandle context, const Open& open) {
  const auto model = find<Model>(handle);
  if (!model) return refused(kNullPointer, "the model is NULL or was freed");
  if (context && !find<Options>(context)) return refused(kNullPointer, "the context was freed");
  if (type != kMSModelTypeMindIRLite && type != kMSModelTypeMindIR)
    return refused(kNotSupported, message({"model type ", type, " cannot be loaded: expected 4, MindIR_Lite"}));
  return guarded([&] {
    const Turn turn(model->building);
    if (!turn) return Status(kReentered, "the model is just being built");
    if (model->built) return Status(kParameterInvalid, "the model is built already: create another one");
    std::shared_ptr<Source> source;
    if (Status status = open(&source); !status) return status;
    std::shared_ptr<const Config> config;
    {
      const std::lock_guard<std::mutex> lock(model->settings);
      config = model->config;
    }
    Options chosen;
    if (Status status = options_of(context, config, &chosen); !status) return status;
    return build_model(model, std::move(source), chosen);
  });
}

Status parsed(Source& source) {
  source.file.bytes = &source.bytes;
  source.pool.expect(source.bytes.size());
  return read_model_file(source.bytes.data(), source.bytes.size(), &source.file);
}

// The model, if it has inputs and outputs.
std::shared_ptr<Model> borders_of(MSModelHandle handle) {
  auto model = find<Model>(handle);
  if (!model) return refused(kNullPointer, "the model is NULL or was freed"), nullptr;
  if (!model->built) return refused(kParameterInvalid, "the model is not built"), nullptr;
  return model;
}

bool is_training(const Model& model) { return model.training && model.training->trains(); }
Status in_training() { return {kNotSupported, "the model is in training: MSRunStep takes a step, MSModelSetTrainMode(false) lets it answer"}; }
Handles& outputs_of(Model& model) { return model.training && !is_training(model) ? model.answers : model.outputs; }

MSTensorHandle named(const Handles& tensors, const char* name) {
  for (const MSTensorHandle t : tensors.all())
    if (const auto tensor = find<Border>(t); name && tensor && tensor->name == name) return t;
  refused(kParameterInvalid, message({"the model has no tensor '", name ? name : "", "' there"}));
  return nullptr;
}

// Calls back with the tensors of each node.
class CallBacks : public Observer {
 public:
  CallBacks(const ModelFile& file, MSNodeCallBack before, MSNodeCallBack after, void* user)
      : file_(file), before_(before), after_(after), user_(user) {}
  bool before(const FileNode& node, const NodeRun& run, const Describe& tensor) override {
    return !before_ || call(before_, node, run, tensor, false);
  }
  bool after(const FileNode& node, const NodeRun& run, const Describe& tensor) override {
    return !after_ || call(after_, node, run, tensor, true);
  }

 private:
  bool call(MSNodeCallBack callback, const FileNode& node, const NodeRun& run, const Describe& tensor, bool ran) {
    Handles in, out;
    add(&in, node.inputs, run.inputs, tensor, true);
    add(&out, node.outputs, run.outputs, tensor, ran);
    const std::string name(node.name), type = name_of_operator(node.kind);
    return without_throwing([&] { return callback(user_, in.array(), out.array(), {name.c_str(), type.c_str()}); }, false);
  }
  void add(Handles* handles, const std::vector<uint32_t>& tensors, const std::vector<int>& values, const Describe& tensor, bool made) {
    for (size_t i = 0; i < values.size() && i < tensors.size(); ++i) {
      const myc_tensor* const value = tensor(values[i]);
      if (!value) continue;
      auto described = std::make_shared<Border>();
      described->name = std::string(file_.tensors[tensors[i]].name);
      described->type = {value->dtype, {value->shape, value->shape + value->rank}};
      described->format = file_.tensors[tensors[i]].format;
      described->data = static_cast<uint8_t*>(value->data);
      described->made = made && described->data;
      described->of_model = true;
      handles->add(std::move(described));
    }
  }

  const ModelFile& file_;
  const MSNodeCallBack before_, after_;
  void* const user_;
};

// Callbacks without a pointer of the caller's.
struct Plain {
  MSKernelCallBackC before, after;
};
bool plain_before(void* user, MSTensorHandleArray inputs, MSTensorHandleArray outputs, MSCallBackParamC node) {
  return static_cast<Plain*>(user)->before(inputs, outputs, node);
}
bool plain_after(void* user, MSTensorHandleArray inputs, MSTensorHandleArray outputs, MSCallBackParamC node) {
  return static_cast<Plain*>(user)->after(inputs, outputs, node);
}

}  // namespace

namespace mycelia::lite {

MSStatus told(const Status& status) {
  if (!status) last_error = status.text;
  return static_cast<MSStatus>(status.code);
}

Status read_source(const char* path, std::shared_ptr<Source>* source) {
  auto read = std::make_shared<Source>();
  read->file.outside.set_folder(folder_of(path));
  if (Status status = read->bytes.map(path); !status) return status;
  *source = std::move(read);
  return parsed(**source);
}

Status check_plan(const Source& source, const Options& options, std::string* precision) {
  const Config none, &config = options.config ? *options.config : none;
  const auto asked = config.find("execution_plan");
  size_t halves = options.fp16 ? source.file.nodes.size() : 0;
  if (asked != config.end()) {
    for (const auto& [name, value] : asked->second) {
      const auto& nodes = source.file.nodes;
      if (std::none_of(nodes.begin(), nodes.end(), [&, &name = name](const FileNode& node) { return node.name == name; }))
        return {kParameterInvalid, message({"[execution_plan] names node '", name, "', which the model does not have"})};
      halves += value == "data_type:float16" && !options.fp16;
    }
  }
  if (!precision) return {};
  *precision = halves == 0 ? "float32" : message({"float32: 16-bit arithmetic was asked for ", halves, " nodes, but the kernels for ", kernels().isa(), " compute with 32 bits"});
  return {};
}

Status build_model(const std::shared_ptr<Model>& model, std::shared_ptr<Source> source, const Options& options) {
  std::string precision;
  if (Status status = check_plan(*source, options, &precision); !status) return status;
  auto session = model->workspace ? std::make_unique<Session>(model->workspace) : std::make_unique<Session>();
  if (Status status = session->open(std::move(source), options); !status) return status;
  const std::lock_guard<std::mutex> lock(model->publishing);
  if (model->freed) return {kNullPointer, "the model was freed while it was built"};
  model->precision = precision;
  model->session = std::move(session);
  for (Border& border : model->session->inputs()) model->inputs.add(of_model(model, &border));
  for (Border& border : model->session->outputs()) model->outputs.add(of_model(model, &border));
  if ((model->training = Training::of(*model->session, options)) && !model->training->trains()) {
    if (Status status = model->training->set_trains(false); !status) return status;
    for (Border& border : model->training->active().outputs()) model->answers.add(of_model(model, &border));
  }
  model->built = true;
  return {};
}

Status take_inputs(Session& session, const MSTensorHandleArray& given) {
  std::vector<Border>& own = session.inputs();
  if (given.handle_num && !given.handle_list) return {kNullPointer, "the list of inputs is NULL"};
  if (given.handle_num != own.size())
    return {kInputTensorWrong, message({given.handle_num, " inputs were given, the model has ", own.size()})};
  std::vector<std::shared_ptr<Border>> tensors(own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    tensors[i] = find<Border>(given.handle_list[i]);
    if (!tensors[i]) return {kNullPointer, message({"input ", i, " is NULL or was freed"})};
  }
  for (size_t i = 0; i < own.size(); ++i)
    if (Status status = session.copy_input(i, *tensors[i]); !status) return status;
  return {};
}

Status tensors_of(const MSTensorHandleArray& given, const char* what, std::vector<std::shared_ptr<Border>>* found) {
  if (given.handle_num && !given.handle_list) return {kNullPointer, message({"the list of ", what, "s is NULL"})};
  for (size_t i = 0; i < given.handle_num; ++i) {
    found->push_back(find<Border>(given.handle_list[i]));
    if (!found->back()) return {kNullPointer, message({what, " ", i, " is NULL or was freed"})};
  }
  return {};
}

}  // namespace mycelia::lite

const char* MSGetLastError(void) { return last_error.c_str(); }
const char* MSVersion(void) { return MYCELIA_LITE_VERSION; }
const char* MSKernelsInUse(void) {
  thread_local std::string all;
  all = asked_kernels();
  return all.c_str();
}
const char* MSInstructionSet(void) { return kernels().isa(); }

MSModelHandle MSModelCreate(void) {
  void* made = nullptr;
  guarded([&] { return made = publish(std::make_shared<Model>()), Status(); });
  return made;
}
void MSModelDestroy(MSModelHandle* handle) {
  if (!handle) return;
  if (const auto model = withdraw<Model>(*handle)) {
    const std::lock_guard<std::mutex> lock(model->publishing);
    model->freed = true;
    model->inputs.withdraw_all();  // they keep the model alive
    for (Handles* handles : {&model->outputs, &model->answers, &model->weights, &model->gradients}) handles->withdraw_all();
    for (auto& [name, handles] : model->nodes) handles.withdraw_all();
  }
  *handle = nullptr;
}

MSStatus MSModelLoadConfig(MSModelHandle handle, const char* config_path) {
  const auto model = find<Model>(handle);
  if (!model || !config_path) return refused(kNullPointer, "the model or config_path is NULL, or the model was freed");
  return guarded([&] {
    Config config;
    if (Status status = read_config(config_path, &config); !status) return status;
    const std::lock_guard<std::mutex> lock(model->settings);
    if (model->building || model->built) return Status(kParameterInvalid, "the model is built already: a configuration comes before");
    for (const auto& [section, keys] : config)
      for (const auto& [key, value] : keys) set_config(&model->config, section, key, value);
    return Status();
  });
}
MSStatus MSModelUpdateConfig(MSModelHandle handle, const char* section, const char* key, const char* value) {
  const auto model = find<Model>(handle);
  if (!model || !section || !key || !value) return refused(kNullPointer, "the model, section, key or value is NULL, or the model was freed");
  return guarded([&] {
    if (Status status = check_config(section, key, value); !status) return status;
    const std::lock_guard<std::mutex> lock(model->settings);
    if (model->building || model->built) return Status(kParameterInvalid, "the model is built already: a configuration comes before");
    return set_config(&model->config, section, key, value), Status();
  });
}

MSStatus MSModelBuild(MSModelHandle model, const void* model_data, size_t data_size, MSModelType type, MSContextHandle context) {
  return build(model, type, context, [&](std::shared_ptr<Source>* source) {
    *source = std::make_shared<Source>();
    Status status = (*source)->bytes.copy(model_data, data_size);
    return status ? parsed(**source) : status;
  });
}
MSStatus MSModelBuildFromFile(MSModelHandle model, const char* model_path, MSModelType type, MSContextHandle context) {
  if (!model_path) return refused(kNullPointer, "model_path is NULL");
  return build(model, type, context, [&](std::shared_ptr<Source>* source) { return read_source(model_path, source); });
}
namespace {

// Decrypts a model into memory of its own. `folder`: of its file, where its outside weights lie.
Status opened(const uint8_t* sealed, size_t bytes, const void* key, size_t key_len, const char* mode, const std::string& folder,
              std::shared_ptr<Source>* source) {
  Memory plain;
  size_t size = 0;
  if (Status status = open_sealed(sealed, bytes, key, key_len, mode, &plain, &size); !status) return status;
  *source = std::make_shared<Source>();
  (*source)->bytes.take(std::move(plain), size);
  (*source)->sealed = true;
  (*source)->file.outside.set_folder(folder);
  return parsed(**source);
}

}  // namespace

MSStatus MSModelBuildFromEncryptedFile(MSModelHandle model, const char* model_path, MSModelType type, MSContextHandle context,
                                       const void* key, size_t key_len, const char* dec_mode) {
  if (!model_path || !dec_mode) return refused(kNullPointer, "model_path or dec_mode is NULL");
  return build(model, type, context, [&](std::shared_ptr<Source>* source) {
    ModelBytes sealed;
    if (Status status = sealed.map(model_path); !status) return status;
    return opened(sealed.data(), sealed.size(), key, key_len, dec_mode, folder_of(model_path), source);
  });
}
MSStatus MSModelBuildEncrypted(MSModelHandle model, const void* model_data, size_t data_size, MSModelType type, MSContextHandle context,
                               const void* key, size_t key_len, const char* dec_mode) {
  if (!model_data || !dec_mode) return refused(kNullPointer, "model_data or dec_mode is NULL");
  return build(model, type, context, [&](std::shared_ptr<Source>* source) {
    return opened(static_cast<const uint8_t*>(model_data), data_size, key, key_len, dec_mode, "", source);
  });
}

MSStatus MSModelBuildFromModel(MSModelHandle model, MSModelHandle other, MSContextHandle context) {
  const auto from = find<Model>(other);
  if (!from) return refused(kNullPointer, "the other model is NULL or was freed");
  if (!from->built) return refused(kParameterInvalid, "the other model is not built");
  return build(model, kMSModelTypeMindIRLite, context, [&](std::shared_ptr<Source>* source) { return *source = from->session->source(), Status(); });
}

MSStatus MSModelShareWorkspace(MSModelHandle handle, MSModelHandle other) {
  const auto model = find<Model>(handle), from = find<Model>(other);
  if (!model || !from || model == from) return refused(kNullPointer, "one of the models is NULL or was freed, or both are the same");
  return guarded([&] {
    const Turn turn(model->building), other_turn(from->building);
    if (!turn || !other_turn) return Status(kReentered, "one of the models is just being built");
    if (model->built) return Status(kParameterInvalid, "the model is built already: a workspace is shared before");
    if (!from->workspace) from->workspace = from->built ? from->session->workspace() : std::make_shared<Workspace>();
    from->workspace->share();
    model->workspace = from->workspace;
    return Status();
  });
}

MSStatus MSEncryptInPlace(const void* key, size_t key_len, const void* nonce, void* data, size_t data_size, void* tag) {
  if (!nonce || !data || !tag) return refused(kNullPointer, "nonce, data or tag is NULL");
  if (Status status = check_key(key, key_len); !status) return told(status);
  Gcm(static_cast<const uint8_t*>(key), key_len).seal(static_cast<const uint8_t*>(nonce), static_cast<uint8_t*>(data), data_size, static_cast<uint8_t*>(tag));
  return kMSStatusSuccess;
}

MSStatus MSModelResize(MSModelHandle handle, MSTensorHandleArray inputs, const MSShapeInfo* shape_infos, size_t shape_info_num) {
  if (!shape_infos || (inputs.handle_num && !inputs.handle_list)) return refused(kNullPointer, "the inputs or the shapes are NULL");
  return of_built(handle, [&](Model& model) {
    std::vector<Border>& own = model.session->inputs();
    if (inputs.handle_num != own.size() || shape_info_num != own.size())
      return Status(kParameterInvalid, message({inputs.handle_num, " inputs and ", shape_info_num, " shapes were given, the model has ", own.size(), " inputs"}));
    std::vector<std::vector<int64_t>> shapes(own.size());
    for (size_t i = 0; i < inputs.handle_num; ++i) {
      const auto given = find<Border>(inputs.handle_list[i]);
      const auto found = std::find_if(own.begin(), own.end(), [&](const Border& one) { return &one == given.get(); });
      if (found == own.end()) return Status(kParameterInvalid, message({"tensor ", i, " is no input of the model"}));
      const MSShapeInfo& info = shape_infos[i];
      if (info.shape_num > MS_MAX_SHAPE_NUM) return Status(kParameterInvalid, message({"shape_num is ", info.shape_num, ", at most 32 can be"}));
      shapes[static_cast<size_t>(found - own.begin())].assign(info.shape, info.shape + info.shape_num);
    }
    return model.session->resize(shapes);
  });
}

MSStatus MSModelPredictObserved(MSModelHandle handle, MSTensorHandleArray inputs, MSTensorHandleArray* outputs, MSNodeCallBack before,
                                MSNodeCallBack after, void* user) {
  return of_built(handle, [&](Model& model) {
    Session& session = *model.session;
    const std::vector<MSTensorHandle>& own = model.inputs.all();
    const bool given = inputs.handle_num != own.size() || !inputs.handle_list || !std::equal(own.begin(), own.end(), inputs.handle_list);
    if (Status status = !session.ready() ? session.predict() : given ? take_inputs(session, inputs) : Status(); !status) return status;
    if (is_training(model)) return in_training();
    CallBacks told_to(session.source()->file, before, after, user);
    Status status = run_model(model, before || after ? &told_to : nullptr);
    if (status && outputs) *outputs = outputs_of(model).array();
    return status;
  });
}
MSStatus MSModelPredict(MSModelHandle model, MSTensorHandleArray inputs, MSTensorHandleArray* outputs, MSKernelCallBackC before,
                        MSKernelCallBackC after) {
  Plain plain{before, after};
  return MSModelPredictObserved(model, inputs, outputs, before ? plain_before : nullptr, after ? plain_after : nullptr, &plain);
}

MSStatus MSRunStepObserved(MSModelHandle handle, MSNodeCallBack before, MSNodeCallBack after, void* user) {
  return of_built(handle, [&](Model& model) {
    CallBacks told_to(model.session->source()->file, before, after, user);
    return run_model(model, before || after ? &told_to : nullptr);
  });
}

MSStatus MSRunStep(MSModelHandle model, MSKernelCallBackC before, MSKernelCallBackC after) {
  Plain plain{before, after};
  return MSRunStepObserved(model, before ? plain_before : nullptr, after ? plain_after : nullptr, &plain);
}

MSStatus MSModelRun(MSModelHandle handle) {
  return of_built(handle, [](Model& model) { return is_training(model) ? in_training() : run_model(model); });
}

MSTensorHandleArray MSModelGetInputs(MSModelHandle handle) {
  const auto model = borders_of(handle);
  return model ? model->inputs.array() : MSTensorHandleArray{0, nullptr};
}
MSTensorHandleArray MSModelGetOutputs(MSModelHandle handle) {
  const auto model = borders_of(handle);
  return model ? outputs_of(*model).array() : MSTensorHandleArray{0, nullptr};
}
MSTensorHandle MSModelGetInputByTensorName(MSModelHandle handle, const char* tensor_name) {
  const auto model = borders_of(handle);
  return model ? named(model->inputs, tensor_name) : nullptr;
}
MSTensorHandle MSModelGetOutputByTensorName(MSModelHandle handle, const char* tensor_name) {
  const auto model = borders_of(handle);
  return model ? named(outputs_of(*model), tensor_name) : nullptr;
}

MSTensorHandleArray MSModelGetOutputsByNodeName(MSModelHandle handle, const char* node_name) {
  MSTensorHandleArray found{0, nullptr};
  const auto model = find<Model>(handle);
  of_built(handle, [&](Model& own) {
    const auto* tensors = node_name ? own.session->keep(node_name) : nullptr;
    if (!tensors) return Status(kParameterInvalid, message({"the model has no node '", node_name ? node_name : "", "'"}));
    const std::lock_guard<std::mutex> lock(own.publishing);
    if (own.freed) return Status(kNullPointer, "the model was freed");
    Handles& handles = own.nodes[node_name];
    if (handles.all().empty())
      for (const auto& tensor : *tensors) handles.add(of_model(model, tensor.get()));
    found = handles.array();
    return Status();
  });
  return found;
}

MSStatus MSModelUpdateWeights(MSModelHandle handle, MSTensorHandleArray weights) {
  return of_built(handle, [&](Model& model) {
    std::vector<std::shared_ptr<Border>> given;
    if (Status status = tensors_of(weights, "weight", &given); !status) return status;
    std::vector<const Border*> tensors;
    for (const auto& tensor : given) tensors.push_back(tensor.get());
    if (model.training) return model.training->set_variables(tensors);
    return model.session->update_weights(tensors);
  });
}
