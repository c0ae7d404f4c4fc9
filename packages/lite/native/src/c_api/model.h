// A model behind its handle.
#ifndef MYCELIA_LITE_C_API_MODEL_H_
#define MYCELIA_LITE_C_API_MODEL_H_

#include <map>

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
  Handles inputs, outputs;
  std::mutex publishing;  // held by who makes or withdraws handles of tensors
  bool freed = false;  // its handle is: tensors get no handles any more, since those would keep it
  std::map<std::string, Handles> nodes;  // kept outputs, by node
  std::string precision;  // how it computes
  std::map<std::string, std::string> info;
  std::vector<std::string> node_names, node_types;  // that a profile points to
  std::shared_ptr<Program> program;  // that MSModelGetProgram gave last
};

Status build_model(const std::shared_ptr<Model>& model, std::shared_ptr<Source> source, const Options& options);

}  // namespace mycelia::lite

#endif
