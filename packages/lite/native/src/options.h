// How a model is to run: what a context and a configuration say.
#ifndef MYCELIA_LITE_OPTIONS_H_
#define MYCELIA_LITE_OPTIONS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "status.h"

namespace mycelia::lite {

struct Delegate;
class Parallel;
class Threads;

// Lanes for `count` steps at the same time (lanes.cc).
std::unique_ptr<Parallel> make_lanes(int count, const Threads& threads);
// The processor's cores that this process may use, in the order of preference of an affinity: by capacity, else by highest
// frequency. `root` is the folder of the system's description of processors.
std::vector<int32_t> cores_by_speed(int32_t affinity, const char* root);

constexpr int32_t kMostLanes = 64;

// A configuration by section and key.
using Config = std::map<std::string, std::map<std::string, std::string>>;

struct Options {
  int32_t threads = 1;  // of a run, the caller's included
  int32_t inter_op = 1;  // chains of nodes that run at once
  int32_t affinity = 0;  // 0 none, 1 fast cores first, 2 slow cores first
  std::vector<int32_t> cores;  // wins over affinity
  bool shared_pool = false;  // the threads are those of all models that say so
  bool parallel = false;  // independent chains at once, two unless inter_op says how many
  bool fp16 = false;  // prefer 16-bit arithmetic
  int devices = 0;  // described
  std::vector<std::shared_ptr<Delegate>> delegates;  // in order of preference
  std::shared_ptr<const Config> config;  // null: none
  // By address, set by what asks for them: a program that does not links neither.
  std::unique_ptr<Parallel> (*lanes_for)(int count, const Threads& threads) = nullptr;
  std::vector<int32_t> (*cores_for)(int32_t affinity, const char* root) = nullptr;

  // Steps that run at the same time.
  int32_t lanes() const { return std::min({threads, parallel ? std::max(inter_op, 2) : inter_op, kMostLanes}); }
};

// Whether the configuration lets large products round worse for fewer multiplications: [common] accuracy=fast.
bool is_fast(const Options& options);

// `[section]` lines, `key=value` lines, `#` comments.
Status read_config(const std::string& path, Config* config);
void set_config(std::shared_ptr<Config>* config, const std::string& section, const std::string& key, const std::string& value);
// Whether the runtime knows the key of the section and can do what the value says.
Status check_config(const std::string& section, const std::string& key, const std::string& value);

}  // namespace mycelia::lite

#endif
