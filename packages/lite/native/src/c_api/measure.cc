// What a model takes: times of runs and of nodes, memory, how it was built.
#include <chrono>
#include <cstdint>

#include "../kernels.h"
#include "../memory_plan.h"
#include "model.h"

using namespace mycelia::lite;

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

}  // namespace

MSStatus MSModelTimeRuns(MSModelHandle handle, size_t warm_up, size_t loops, double* milliseconds) {
  if (loops && !milliseconds) return refused(kNullPointer, "milliseconds is NULL");
  if (warm_up > SIZE_MAX - loops) return refused(kParameterInvalid, "warm_up and loops are too many together");
  return of_built(handle, [&](Model& model) {
    for (size_t i = 0; i < warm_up + loops; ++i) {
      const Clock::time_point begin = Clock::now();
      if (Status status = run_model(model); !status) return status;
      if (i >= warm_up) milliseconds[i - warm_up] = milliseconds_since(begin);
    }
    return Status();
  });
}

MSStatus MSModelProfile(MSModelHandle handle, size_t loops, MSNodeProfile* profile, size_t* node_num) {
  if (!node_num) return refused(kNullPointer, "node_num is NULL");
  return of_built(handle, [&](Model& model) {
    const std::vector<FileNode>& nodes = model.session->source()->file.nodes;
    if (!profile) return *node_num = nodes.size(), Status();
    if (*node_num < nodes.size()) return Status(kParameterInvalid, "there are " + std::to_string(nodes.size()) + " nodes, but places for " + std::to_string(*node_num));
    NodeTimes times{std::vector<double>(nodes.size()), std::vector<size_t>(nodes.size())};
    for (size_t i = 0; i < loops; ++i)
      if (Status status = run_model(model, nullptr, &times); !status) return status;
    if (model.node_names.empty()) {
      for (const FileNode& node : nodes) {
        model.node_names.emplace_back(node.name);
        model.node_types.push_back(name_of_operator(node.kind));
      }
    }
    for (size_t n = 0; n < nodes.size(); ++n)
      profile[n] = {model.node_names[n].c_str(), model.node_types[n].c_str(), times.milliseconds[n], times.calls[n]};
    return *node_num = nodes.size(), Status();
  });
}

const char* MSModelGetInfo(MSModelHandle handle, const char* key) {
  const char* found = nullptr;
  of_built(handle, [&](Model& model) {
    const std::string wanted = key ? key : "";
    Session& session = *model.session;
    if (wanted == "precision") {
      model.info[wanted] = model.precision;
    } else if (wanted == "isa") {
      model.info[wanted] = kernels().isa();
    } else if (wanted == "partition") {
      model.info[wanted] = session.plan() && !session.plan()->partition.empty() ? session.plan()->partition : "all nodes: CPU\n";
    } else if (wanted == "arena_bytes") {
      model.info[wanted] = std::to_string(session.plan() ? session.plan()->arena_bytes : 0);
    } else if (wanted == "workspace_bytes") {
      const Workspace::Use use(*session.workspace());  // of another thread's run it waits for the end
      model.info[wanted] = std::to_string(session.workspace()->bytes());
    } else if (wanted == "memory_plan") {
      model.info[wanted] = session.plan() ? memory_plan(*session.plan(), session.source()->file.nodes) : "";
    } else if (wanted == "weight_bytes" || wanted == "packed_bytes") {
      const Planning planning(*session.source());
      if (!planning) return planned_already();
      uint64_t bytes = 0;
      if (wanted == "weight_bytes") {
        for (const FileTensor& tensor : session.source()->file.tensors) bytes += tensor.data ? tensor.bytes : 0;
      } else {
        for (const auto& [name, pack] : session.source()->packs) bytes += pack.memory.size();
      }
      model.info[wanted] = std::to_string(bytes);
    }
    const auto fact = model.info.find(wanted);
    if (fact == model.info.end()) return Status(kParameterInvalid, "there is no information '" + wanted + "' about a model");
    return found = fact->second.c_str(), Status();
  });
  return found;
}

bool MSModelCheckSupport(MSDeviceType device, MSModelType type) {
  return device == kMSDeviceTypeCPU && (type == kMSModelTypeMindIRLite || type == kMSModelTypeMindIR);
}
