// A model behind its handle.
#ifndef MYCELIA_LITE_C_API_MODEL_H_
#define MYCELIA_LITE_C_API_MODEL_H_

#include <map>

#include "border.h"

namespace mycelia::lite {

struct Model {
  std::mutex building;
  Config config;
  std::unique_ptr<Session> session;  // null until it is built
  Handles inputs, outputs;
  std::map<std::string, Handles> nodes;  // kept outputs, by node
  std::map<std::string, std::string> info;
  std::vector<std::string> node_names, node_types;  // that a profile points to
};

Status build_model(const std::shared_ptr<Model>& model, std::shared_ptr<Source> source, const Options& options);

}  // namespace mycelia::lite

#endif
