// A model behind its handle.
#ifndef MYCELIA_LITE_C_API_MODEL_H_
#define MYCELIA_LITE_C_API_MODEL_H_

#include <map>

#include "../training.h"
#include "border.h"

namespace mycelia::lite {

struct Program;

struct Model {
  std::atomic<bool> building{false};
  std::mutex settings;  // held by who reads or changes the configuration
  std::shared_ptr<Config> config;  // null: none
  std::shared_ptr<Workspace> workspace;  // shared with other models; null: the session's own
  std::atomic<bool> built{false};  // then these stay as they are
  std::unique_ptr<Session> session;
  std::unique_ptr<Training> training;  // null: the file is for inference
  Handles inputs, outputs;
  Handles answers, weights, gradients;  // of a model that learns: outputs while it does not train, variables, what its optimizer gets
  std::mutex publishing;  // held by who makes or withdraws handles of tensors
  bool freed = false;  // its handle is: tensors get no handles any more, since those would keep it
  std::map<std::string, Handles> nodes;  // kept outputs, by node
  std::string precision;  // how it computes
  std::map<std::string, std::string> info;
  std::vector<std::string> node_names, node_types;  // that a profile points to
  std::shared_ptr<Program> program;  // that MSModelGetProgram gave last
};

// Runs the model on what its inputs hold: a model that learns takes a step while it trains, else it answers.
inline Status run_model(Model& model, Observer* observer = nullptr, NodeTimes* times = nullptr) {
  return model.training ? model.training->run(observer, times) : model.session->predict(observer, times);
}

// A call that has the model alone; refused unless it is built.
template <class Body>
MSStatus of_built(MSModelHandle handle, const Body& body) {
  const auto model = find<Model>(handle);
  if (!model) return refused(kNullPointer, "the model is NULL or was freed");
  if (!model->built) return refused(kParameterInvalid, "the model is not built");
  return alone(*model->session, [&] { return body(*model); });
}

// The tensors of a call.  Errors: kNullPointer: one that was freed.
Status tensors_of(const MSTensorHandleArray& given, const char* what, std::vector<std::shared_ptr<Border>>* found);

Status build_model(const std::shared_ptr<Model>& model, std::shared_ptr<Source> source, const Options& options);

}  // namespace mycelia::lite

#endif
